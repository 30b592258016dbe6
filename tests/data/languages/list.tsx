import { useState } from "react";

type Props<T> = {
  items: Array<Map<string, T>>;
  onPick?: (item: T) => void;
};

export function List({ items, onPick }: Props<string>) {
  const [open, setOpen] = useState<Record<string, boolean>>({});

  if (!items) {
    return null;
  }
  if (items.length === 0) {
    return <p className="empty">It's empty :(</p>;
  }

  return (
    <ul>
      {items.map((item, index) => (
        <li key={index} onClick={() => setOpen({ ...open, [index]: true })}>
          <span>{item.get("name")}</span>
          <span>{item.get("price")}</span>
          {/* closed :) */}
          {open[index] && <button onClick={() => onPick?.("a")}>Pick</button>}
        </li>
      ))}
    </ul>
  );
}
