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

/** What is a promise in any case: it waits until the store is open. Of a port with `undefined`, all. */
const PROMISED: Readonly<Record<string, readonly string[] | undefined>> = {
  store: ['record', 'evict', 'disprove', 'ping', 'isEmpty'],
  sightings: ['record'],
  blocklist: ['add', 'remove'],
  ancestors: ['due', 'nextDue', 'count', 'postpone', 'isWaiting'],
  ...{ settings: undefined, interactions: undefined, headers: undefined, held: undefined },
}

function isPromised(port: string, name: string | symbol): boolean {
  return Object.hasOwn(PROMISED, port) && (PROMISED[port]?.includes(String(name)) ?? true)
}

/**
 * A store that is opened when it is first asked for: hosts make their services before they are ready. What is read at once throws
 * StoreUnavailableError until `opened` has resolved.
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
  const call = (port: (typeof PORTS)[number] | 'store', name: string | symbol): Method => {
    const ask = (store: Store, args: unknown[]): unknown => {
      const target = port === 'store' ? store : (Reflect.get(store, port) as object)
      return (Reflect.get(target, name) as Method).apply(target, args)
    }
    if (isPromised(port, name)) return async (...args) => await ask(opened() ?? (await open()), args)
    return (...args) => ask(current(), args)
  }
  const ports = PORTS.map((port) => {
    const own = port === 'admissions' ? { scoresPerMs: SCORES_A_FACT } : {}
    return [port, new Proxy(own, { get: (known, name) => Reflect.get(known, name) ?? call(port, name) })]
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
    get: (known, name) => (name in known ? known[name] : call('store', name)),
  }) as unknown as Store
}
