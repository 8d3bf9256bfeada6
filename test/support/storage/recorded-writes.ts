import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import type { HostStore } from '../../../backend/src/graph/host-store.js'

/** Something that was written to a store, to be done to another. */
export type RecordedWrite = (store: HostStore) => Promise<unknown>

/**
 * All that is written to a store from now on, in its order, whether it was refused or not.
 *
 * @param admission By what the store derives admissions, and so does one to which this is done.
 */
export function recordWrites(graph: HostStore, admission: AdmissionOptions): RecordedWrite[] {
  const writes: RecordedWrite[] = []
  const { record, disprove, evict } = graph
  const { add } = graph.blocklist
  graph.record = async (...args) => {
    writes.push((store) => {
      store.deriveBy(admission)
      return store.record(...args)
    })
    return await record.apply(graph, args)
  }
  graph.disprove = async (...args) => {
    writes.push((store) => store.disprove(...args))
    return await disprove.apply(graph, args)
  }
  const { sightings } = graph
  Object.assign(graph, {
    sightings: {
      of: sightings.of,
      record: async (...args: Parameters<typeof sightings.record>) => {
        writes.push((store) => store.sightings.record(...args))
        return await sightings.record(...args)
      },
    },
  })
  graph.evict = async (...args) => {
    writes.push((store) => store.evict(...args))
    await evict.apply(graph, args)
  }
  graph.blocklist.add = async (...args) => {
    writes.push((store) => store.blocklist.add(...args))
    return await add(...args)
  }
  return writes
}

/** Does what was written once more. What had lost by then was refused, and is refused again. */
export async function doAgain(write: RecordedWrite, store: HostStore): Promise<void> {
  try {
    await write(store)
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'LostConflictError') throw error
  }
}
