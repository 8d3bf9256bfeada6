/** Runs `work` once per object and keeps its result for as long as the object is alive. */
export function memoizeByObject<Key extends object, Result>(
  work: (key: Key) => Result,
): (key: Key) => Result {
  const results = new WeakMap<Key, { result: Result }>()
  return (key) => {
    const known = results.get(key)
    if (known !== undefined) return known.result
    const result = work(key)
    results.set(key, { result })
    return result
  }
}
