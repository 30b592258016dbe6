// A cache of the values that were asked for last; it's not safe for threads.
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace shop {

/** Forgets what was asked for longest ago. */
template <typename Key, typename Value>
class Cache {
public:
    explicit Cache(std::size_t limit) : limit_(limit) {}

    std::optional<Value> get(const Key &key) {
        auto found = places_.find(key);
        if (found == places_.end()) {
            ++misses_;
            return std::nullopt;
        }
        entries_.splice(entries_.begin(), entries_, found->second);
        return found->second->second;
    }

    void put(Key key, Value value) {
        if (auto found = places_.find(key); found != places_.end()) {
            found->second->second = std::move(value);
            return;
        }
        if (entries_.size() >= limit_) {
            places_.erase(entries_.back().first);
            entries_.pop_back();
        }
        entries_.emplace_front(key, std::move(value));
        places_[std::move(key)] = entries_.begin();
    }

    [[nodiscard]] std::size_t misses() const noexcept { return misses_; }

private:
    using Entry = std::pair<Key, Value>;
    std::list<Entry> entries_;
    std::unordered_map<Key, typename std::list<Entry>::iterator> places_;
    std::size_t limit_;
    std::size_t misses_ = 0;
};

struct Price {
    std::string currency = "EUR";
    long cents = 0;

    friend Price operator+(const Price &one, const Price &other) {
        return {one.currency, one.cents + other.cents};
    }
};

enum class Rounding { up, down };

inline long rounded(double amount, Rounding rounding) {
    switch (rounding) {
    case Rounding::up:
        return static_cast<long>(amount + 0.5);
    case Rounding::down:
        return static_cast<long>(amount);
    }
    return 0;
}

}  // namespace shop

int main() {
    shop::Cache<std::string, shop::Price> cache{16};
    cache.put("apple", {"EUR", 120});
    const auto total = [&cache](const std::string &name) {
        auto price = cache.get(name);
        return price ? price->cents : 0L;
    };
    return total("apple") > 0 ? 0 : 1;
}
