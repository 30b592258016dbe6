using System;
using System.Collections.Generic;

namespace Shop
{
    /// <summary>It's a shop (of items).</summary>
    public class Shop
    {
        private readonly Dictionary<string, List<int>> prices = new();

        public int Count { get; private set; }

        public int Price(string name)
        {
            if (name == null)
            {
                return 0;
            }
            if (!prices.TryGetValue(name, out var found))
            {
                return 0;
            }
            return found[0];
        }

        public string Text()
        {
            var lines = new List<string> { "(", @"\", $"{Count} [" };
            foreach (var (name, list) in prices)
            {
                lines.Add($"{name}: {string.Join(", ", list)}");
            }
            return string.Join('}'.ToString(), lines);
        }

#if DEBUG
        public void Print() => Console.WriteLine(Text());
#endif
    }
}
