// A queue that's bounded (and private).
export class Queue {
  #items = [];
  #limit;

  constructor(limit = 10) {
    this.#limit = limit;
  }

  push(item) {
    if (item === undefined) {
      return false;
    }
    if (this.#items.length >= this.#limit) {
      return false;
    }
    this.#items.push(item);
    return true;
  }

  pop() {
    if (this.#items.length === 0) {
      return undefined;
    }
    return this.#items.shift();
  }

  get size() {
    return this.#items.length;
  }
}

const smileys = { happy: ":)", sad: ":(", pattern: /[)\]}]+/g };

export function describe(queue, names = []) {
  const list = names.map((name) => `${name}: ${queue.size}`);
  const nested = `(${list.map((one) => `[${one}`).join(", ")}`;
  return nested.replace(smileys.pattern, () => "");
}

export const routes = [
  {
    path: "/",
    handler: (request, response) => {
      response.send({ ok: true });
    },
  },
  {
    path: "/size",
    handler: (request, response) => {
      response.send({ ok: true });
    },
  },
];

fetch("/api")
  .then((response) => response.json())
  .then((data) => {
    if (!data) {
      return;
    }
    console.log(data);
  })
  .catch((error) => {
    console.log(error);
  });
