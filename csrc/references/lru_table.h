// The table behind every cache of the extension: bounded, the least recently used entry goes first.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weft::py {

// Of a table as such.
class AnyTable {
 public:
  virtual size_t size() const = 0;
  virtual size_t limit() const = 0;
  virtual void set_limit(size_t limit) = 0;

 protected:
  ~AnyTable() = default;
};
// Those of the process that were used so far, by name.
inline std::vector<std::pair<const char*, AnyTable*>>& process_tables() {
  static auto* all = new std::vector<std::pair<const char*, AnyTable*>>;
  return *all;
}

// Comparing keys may run Python code, and so does destroying what entries hold; either may come
// back to the table, in this thread or, since it can hand over the interpreter's lock, in another.
// So nothing of that happens while the table is walked or changed: keys are compared on entries
// that the lookup owns, and what leaves the table is destroyed when the table is whole again.
//
// Every use is under the interpreter's lock.
template <typename Key, typename Value>
class LruTable final : public AnyTable {
  struct Node {
    Key key;
    Value value;
    uint64_t hash;
    uint32_t owners = 0;
    bool linked = false;
    Node* next = nullptr;  // in its bucket
    Node* newer = nullptr;
    Node* older = nullptr;
  };

 public:
  // Owns an entry, which may have left the table since.
  class Handle {
   public:
    Handle() = default;
    Handle(const Handle& o) : Handle(o.node_) {}
    Handle(Handle&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
    Handle& operator=(Handle o) noexcept {
      std::swap(node_, o.node_);
      return *this;
    }
    ~Handle() {
      if (node_ && --node_->owners == 0) delete node_;
    }
    explicit operator bool() const { return node_ != nullptr; }
    Value& operator*() const { return node_->value; }
    Value* operator->() const { return &node_->value; }

   private:
    friend class LruTable;
    explicit Handle(Node* node) : node_(node) {
      if (node_) ++node_->owners;
    }
    Node* node_ = nullptr;
  };

  explicit LruTable(size_t limit) : limit_(limit), buckets_(16) {}
  // One that lives as long as the process.
  LruTable(const char* name, size_t limit) : LruTable(limit) {
    process_tables().emplace_back(name, this);
  }
  LruTable(const LruTable&) = delete;
  ~LruTable() { clear(); }

  // The entry with this hash whose key `equals(key)` accepts, now the most recently used; empty if
  // there is none.
  template <typename Equals>
  Handle find(uint64_t hash, Equals&& equals) {
    Handle first;
    std::vector<Handle> others;
    for (Node* n = bucket(hash); n; n = n->next) {
      if (n->hash != hash) continue;
      if (first) {
        others.push_back(Handle(n));
      } else {
        first = Handle(n);
      }
    }
    if (!first) return {};
    if (equals(std::as_const(first.node_->key))) return touched(std::move(first));
    for (Handle& h : others)
      if (equals(std::as_const(h.node_->key))) return touched(std::move(h));
    return {};
  }

  Handle insert(uint64_t hash, Key key, Value value) {
    if (size_ >= buckets_.size()) grow();
    Handle made(new Node{std::move(key), std::move(value), hash});
    link(made.node_);
    drop_beyond(limit_);
    return made;
  }

  // Drops the entries for which f(value) holds; f must run no Python code.
  template <typename F>
  void erase_if(F&& f) {
    std::vector<Handle> dropped;
    for (Node* n = newest_; n;) {
      Node* older = n->older;
      if (f(std::as_const(n->value))) dropped.push_back(unlink(n));
      n = older;
    }
  }

  void clear() { drop_beyond(0); }

  size_t size() const override { return size_; }
  size_t limit() const override { return limit_; }
  void set_limit(size_t limit) override {
    limit_ = limit;
    drop_beyond(limit);
  }

  // Calls f(key, value) on the entries that only the table owns, most recently used first. f must
  // run no Python code; for tp_traverse.
  template <typename F>
  void for_each_owned(F&& f) const {
    for (Node* n = newest_; n; n = n->older)
      if (n->owners == 1) f(n->key, n->value);
  }

 private:
  Node*& bucket(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  // The table's own reference to a node is counted like those of handles.
  void link(Node* n) {
    ++n->owners;
    n->linked = true;
    n->next = std::exchange(bucket(n->hash), n);
    push_newest(n);
    ++size_;
  }
  Handle unlink(Node* n) {
    Node** at = &bucket(n->hash);
    while (*at != n) at = &(*at)->next;
    *at = n->next;
    remove_from_order(n);
    --size_;
    n->linked = false;
    Handle out(n);
    --n->owners;
    return out;
  }
  void drop_beyond(size_t count) {
    std::vector<Handle> dropped;
    while (size_ > count) dropped.push_back(unlink(oldest_));
  }
  Handle touched(Handle h) {
    Node* n = h.node_;
    if (n->linked && n != newest_) {
      remove_from_order(n);
      push_newest(n);
    }
    return h;
  }
  void push_newest(Node* n) {
    n->newer = nullptr;
    n->older = newest_;
    (newest_ ? newest_->newer : oldest_) = n;
    newest_ = n;
  }
  void remove_from_order(Node* n) {
    (n->newer ? n->newer->older : newest_) = n->older;
    (n->older ? n->older->newer : oldest_) = n->newer;
  }
  void grow() {
    std::vector<Node*> old(buckets_.size() * 2);
    old.swap(buckets_);
    for (Node* n : old) {
      while (n) {
        Node* next = n->next;
        n->next = std::exchange(bucket(n->hash), n);
        n = next;
      }
    }
  }

  size_t limit_;
  size_t size_ = 0;
  std::vector<Node*> buckets_;  // a power of two of them
  Node* newest_ = nullptr;
  Node* oldest_ = nullptr;
};

}  // namespace weft::py
