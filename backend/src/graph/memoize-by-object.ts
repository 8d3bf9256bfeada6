/** The same work, done once for each object it is asked about, and for as long as somebody holds that object. */
export function memoizeByObject<Key extends object, Result>(
  work: (key: Key) => Result,
): (key: Key) => Result {
  const done = new WeakMap<Key, { result: Result }>()
  return (key) => {
    const known = done.get(key)
    if (known !== undefined) return known.result
    const result = work(key)
    done.set(key, { result })
    return result
  }
}
