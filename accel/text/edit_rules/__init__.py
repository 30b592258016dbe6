"""What the embedded model's edit instructions say, and which texts they make."""
