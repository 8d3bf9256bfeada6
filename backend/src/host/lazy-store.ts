import { StoreUnavailableError } from '../graph/errors.js'
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
 * A store that is opened when it is first asked for: hosts make their services before they are ready. Until `opened` has resolved,
 * everything else throws StoreUnavailableError.
 *
 * @param open Opens it, once; after a failure again.
 */
export function lazyStore<Store extends HostStore>(
  opened: () => Store | undefined,
  open: () => Promise<Store>,
): Store {
  const current = (): Store => {
    const store = opened()
    if (store === undefined) throw new StoreUnavailableError(new Error('the index is not open'))
    return store
  }
  const call =
    (find: () => object, name: string | symbol): Method =>
    (...args) => {
      const target = find()
      return (Reflect.get(target, name) as Method).apply(target, args)
    }
  const ports = PORTS.map((port) => {
    const find = (): object => Reflect.get(current(), port) as object
    const own = port === 'admissions' ? { scoresPerMs: SCORES_A_FACT } : {}
    return [port, new Proxy(own, { get: (known, name) => Reflect.get(known, name) ?? call(find, name) })]
  })
  const own: Record<string | symbol, unknown> = {
    ...Object.fromEntries(ports),
    opened: async () => {
      if (opened() === undefined) await open()
    },
    cachedAnswer: (key: string) => opened()?.cachedAnswer(key),
    // A promise would be one of its methods.
    // biome-ignore lint/suspicious/noThenProperty: it says that this is none.
    then: undefined,
  }
  return new Proxy(own, {
    get: (known, name) => (name in known ? known[name] : call(current, name)),
  }) as unknown as Store
}
