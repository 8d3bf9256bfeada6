/** A priority queue: the least item comes first. */
export class Heap<Item> {
  private readonly items: Item[] = []

  constructor(private readonly isLess: (one: Item, other: Item) => boolean) {}

  push(item: Item): void {
    const { items } = this
    let at = items.push(item) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!this.isLess(item, this.at(above))) break
      items[at] = this.at(above)
      at = above
    }
    items[at] = item
  }

  pop(): Item | undefined {
    const { items } = this
    const [least] = items
    const last = items.pop()
    if (least === undefined || last === undefined || items.length === 0) return least
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= items.length) break
      if (below + 1 < items.length && this.isLess(this.at(below + 1), this.at(below))) below++
      if (!this.isLess(this.at(below), last)) break
      items[at] = this.at(below)
      at = below
    }
    items[at] = last
    return least
  }

  private at(index: number): Item {
    return this.items[index] as Item
  }
}
