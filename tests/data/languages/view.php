<?php
// It's a view (of items).
namespace Shop;

class View
{
    private array $items = [];

    public function add(?Item $item): self
    {
        if ($item === null) {
            return $this;
        }
        if (isset($this->items[$item->id])) {
            return $this;
        }
        $this->items[$item->id] = $item;
        return $this;
    }

    public function html(): string
    {
        $rows = array_map(function ($item) {
            return "<li>{$item->name} ({$item->price}</li>";
        }, $this->items);
        # one } more
        return '<ul>' . implode("\n", $rows) . ')</ul>';
    }
}
?>
<p>It's here :)</p>
<?php foreach ($view->items as $item): ?>
  <p><?= htmlspecialchars($item->name) ?></p>
<?php endforeach; ?>
