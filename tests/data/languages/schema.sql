-- It's the schema (of a shop).
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    name VARCHAR(80) NOT NULL,
    price NUMERIC(10, 2) DEFAULT (0)
);

CREATE TABLE sales (
    id INTEGER PRIMARY KEY,
    item INTEGER REFERENCES items (id),
    note VARCHAR(80) DEFAULT ':('
);

INSERT INTO items (id, name, price) VALUES
    (1, 'it''s an apple', 1.0),
    (2, 'pear )', 2.0),
    (3, 'plum', 2.0);

SELECT i.name, COUNT(*) AS sold
FROM items i
LEFT JOIN (
    SELECT item FROM sales WHERE (note IS NULL OR note = ')')
) s ON s.item = i.id
WHERE i.price > (SELECT AVG(price) FROM items)
GROUP BY i.name;
