import { type Changes, changesOfWrite, type Dependency } from '../../../backend/src/graph/dependencies.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'

/** Notes what writes to a store change, for a cache in another thread. */
export class RecordedChanges {
  private readonly changed = new Set<Dependency>()
  /** Whether a write changed what is not known. */
  private isUnknown = false

  /** The store, with its writes noted. */
  of(store: HostStore): HostStore {
    const unknown = <Result>(write: Promise<Result>): Promise<Result> => {
      this.isUnknown = true
      return write
    }
    const noting: Partial<HostStore> = {
      deriveBy: (admission) => store.deriveBy(admission),
      record: async (records, options) => {
        let derived: readonly Dependency[] = []
        const onDerived = (changed: readonly Dependency[]): void => {
          derived = changed
          options?.onDerived?.(changed)
        }
        const admitted = await store.record(records, { ...options, onDerived })
        this.note(changesOfWrite(records, { admitted, derived }))
        return admitted
      },
      evict: (outpoint) => unknown(store.evict(outpoint)),
      disprove: (block) => unknown(store.disprove(block)),
      sightings: {
        of: (txids) => store.sightings.of(txids),
        record: (records, options) => unknown(store.sightings.record(records, options)),
      },
    }
    return Object.assign(Object.create(store) as HostStore, noting)
  }

  /** What was changed since the last call. */
  take(): Changes {
    const changes = this.isUnknown ? undefined : [...this.changed]
    this.changed.clear()
    this.isUnknown = false
    return changes
  }

  private note(changes: Changes): void {
    if (changes === undefined) this.isUnknown = true
    else for (const change of changes) this.changed.add(change)
  }
}
