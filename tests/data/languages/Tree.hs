-- | It's a tree (of things).
module Tree (Tree (..), insert, insert', depth) where

data Tree a
  = Leaf
  | Node (Tree a) a (Tree a)
  deriving (Show, Eq)

insert :: (Ord a) => a -> Tree a -> Tree a
insert x Leaf = Node Leaf x Leaf
insert x tree@(Node left y right)
  | x < y = Node (insert x left) y right
  | x > y = Node left y (insert x right)
  | otherwise = tree

insert' :: (Ord a) => [a] -> Tree a -> Tree a
insert' xs tree' = foldr insert tree' xs

depth :: Tree a -> Int
depth Leaf = 0
depth (Node left _ right) = 1 + max (depth left) (depth right)

brackets :: [Char]
brackets = ['(', ')', '[', ']']

smile :: String
smile = ":)" ++ show (depth (insert 'a' Leaf))

main :: IO ()
main = do
  let tree = insert' [3, 1, 2 :: Int] Leaf
      f' = (* 2)
  print (depth tree)
  print (map f' [1, 2, 3])
  mapM_ putStrLn ["(", smile]
