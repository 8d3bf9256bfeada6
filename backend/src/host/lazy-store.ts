import type { HostStore } from '../graph/host-store.js'
import { SCORES_A_FACT } from '../index/admissions.js'

type Method = (...args: unknown[]) => unknown

/** The parts of a store that are ports of their own. */
const PORTS = [
  ...[
    'transactions',
    'blocks',
    'frontier',
    'names',
    'ordinals',
    'metadata',
    'attributes',
    'content',
    'streams',
  ],
  ...['listings', 'admissions', 'settings', 'interactions', 'headers', 'sightings', 'blocklist'],
  ...['ancestors', 'held'],
] as const

/**
 * A store that is opened when it is first asked: hosts make their services before they are ready. Until then every answer is a
 * promise, and afterwards it is what the store itself gives.
 *
 * @param open Opens it, once; after a failure again.
 */
export function lazyStore<Store extends HostStore>(
  opened: () => Store | undefined,
  open: () => Promise<Store>,
): Store {
  const call = (find: (store: Store) => object, name: string | symbol): Method => {
    const method = (store: Store, args: unknown[]): unknown => {
      const target = find(store)
      return (Reflect.get(target, name) as Method).apply(target, args)
    }
    return (...args) => {
      const store = opened()
      return store === undefined ? later(open().then((each) => method(each, args))) : method(store, args)
    }
  }
  const ports = PORTS.map((port) => {
    const find = (store: Store): object => Reflect.get(store, port) as object
    const own = port === 'admissions' ? { scoresPerMs: SCORES_A_FACT } : {}
    return [port, new Proxy(own, { get: (known, name) => Reflect.get(known, name) ?? call(find, name) })]
  })
  const own: Record<string | symbol, unknown> = {
    ...Object.fromEntries(ports),
    cachedAnswer: (key: string) => opened()?.cachedAnswer(key),
    // A promise would be one of its methods.
    // biome-ignore lint/suspicious/noThenProperty: it says that this is none.
    then: undefined,
  }
  return new Proxy(own, {
    get: (known, name) => (name in known ? known[name] : call((store) => store, name)),
  }) as unknown as Store
}

/** An answer that comes later: what iterates over it gets what it will give. */
function later(answer: Promise<unknown>): unknown {
  return Object.assign(answer, {
    async *[Symbol.asyncIterator]() {
      yield* (await answer) as AsyncIterable<unknown>
    },
  })
}
