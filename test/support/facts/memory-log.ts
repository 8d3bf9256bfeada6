import {
  type Batch,
  CHANGE,
  type LogRow,
  OtherLogError,
  type Place,
  type SharedLog,
} from '../../../backend/src/facts/shared-log.js'
import { StoreUnavailableError } from '../../../backend/src/graph/errors.js'
import { equalBytes, toHex } from '../../../backend/src/protocol/bytes.js'

/** The rows of a log in memory, which any number of {@link MemoryLog} share. */
export interface MemoryRows {
  id: string
  rows: LogRow[]
}

/** What happens to a call on its way: it may wait, or throw. */
export type OnTheWay = (call: 'insert' | 'after', when: 'before' | 'behind') => Promise<void> | void

/** A shared log in memory, as a gateway has it: what a database does, in the fewest words. */
export class MemoryLog implements SharedLog {
  /** Set by tests: the call that throws is answered as that of a database that cannot be reached. */
  onTheWay: OnTheWay = () => {}

  constructor(private readonly shared: MemoryRows) {}

  get id(): string {
    return this.shared.id
  }

  async insert({ first, id, at, rows }: Batch): Promise<boolean> {
    return await this.call('insert', () => {
      const all = this.shared.rows
      const there = all[first - 1]
      if (there !== undefined) return there.batch === toHex(id)
      if (first !== all.length + 1) throw new Error('a place is left empty')
      all.push(...rows.map((row, index) => ({ ...row, seq: first + index, first, batch: toHex(id), at })))
      return true
    })
  }

  async after(place: Place, { limit, maxBytes }: { limit: number; maxBytes: number }): Promise<LogRow[]> {
    return await this.call('after', () => {
      const { rows } = this.shared
      if (place.seq > 0 && rows[place.seq - 1]?.batch !== place.batch) throw new OtherLogError(place)
      let bytes = 0
      const page = rows.slice(place.seq, place.seq + limit)
      const end = page.findIndex(({ body }, index) => {
        bytes += body?.length ?? 0
        return index > 0 && bytes > maxBytes
      })
      return end < 0 ? page : page.slice(0, end)
    })
  }

  async get(kind: number, key: Uint8Array): Promise<LogRow | undefined> {
    return this.shared.rows.findLast((row) => row.kind === kind && equalBytes(row.key, key))
  }

  async discard(keys: readonly Uint8Array[]): Promise<void> {
    for (const row of this.shared.rows)
      if (row.kind === CHANGE && keys.some((key) => equalBytes(row.key, key))) row.body = undefined
  }

  async close(): Promise<void> {}

  private async call<Answer>(name: 'insert' | 'after', answer: () => Answer): Promise<Answer> {
    await this.reach(name, 'before')
    const given = answer()
    await this.reach(name, 'behind')
    return given
  }

  private async reach(name: 'insert' | 'after', when: 'before' | 'behind'): Promise<void> {
    try {
      await this.onTheWay(name, when)
    } catch (error) {
      throw new StoreUnavailableError(error)
    }
  }
}
