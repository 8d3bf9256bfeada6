import {
  type Batch,
  isBehind,
  type LogRow,
  type Note,
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
  notes?: Map<string, string>
}

type Call = 'insert' | 'after' | 'note' | 'overwrite' | 'discard'

/** What happens to a call on its way: it may wait, or throw. */
export type OnTheWay = (call: Call, when: 'before' | 'behind') => Promise<void> | void

/** A shared log in memory, as a gateway has it: what a database does, in the fewest words. */
export class MemoryLog implements SharedLog {
  /** Set by tests: the call that throws is answered as that of a database that cannot be reached. */
  onTheWay: OnTheWay = () => {}

  constructor(private readonly shared: MemoryRows) {
    shared.notes ??= new Map()
  }

  get id(): string {
    return this.shared.id
  }

  async insert(batch: Batch): Promise<boolean> {
    if (await isBehind(this, batch)) return false
    const { first, id, at, rows } = batch
    return await this.call('insert', () => {
      const all = this.shared.rows
      const there = all[first - 1]
      if (there !== undefined) return there.batch === toHex(id)
      if (first !== all.length + 1) throw new Error('a place is left empty')
      all.push(...rows.map((row, index) => ({ at, ...row, seq: first + index, first, batch: toHex(id) })))
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

  async overwrite({ seq }: Pick<LogRow, 'seq'>, body: Uint8Array): Promise<void> {
    await this.call('overwrite', () => {
      const row = this.shared.rows[seq - 1]
      if (row?.body !== undefined) this.shared.rows[seq - 1] = { ...row, body }
    })
  }

  async complete(): Promise<void> {}

  async discard(seqs: readonly number[]): Promise<void> {
    await this.call('discard', () => {
      for (const seq of seqs) {
        const row = this.shared.rows[seq - 1]
        if (row !== undefined) row.body = undefined
      }
    })
  }

  /** A batch brings its bodies with it. */
  async collect(): Promise<void> {}

  async last(): Promise<number> {
    return this.shared.rows.length
  }

  async notes(after: string, limit: number): Promise<Note[]> {
    return await this.call('note', () =>
      [...this.texts]
        .map(([name, value]) => ({ name, value }))
        .filter(({ name }) => name > after)
        .sort((one, other) => (one.name < other.name ? -1 : 1))
        .slice(0, limit),
    )
  }

  async note(notes: readonly Note[]): Promise<void> {
    await this.call('note', () => {
      for (const { name, value } of notes)
        if (value === undefined) this.texts.delete(name)
        else this.texts.set(name, value)
    })
  }

  async replaceNote(name: string, { from, to }: { from: string | undefined; to: string }): Promise<boolean> {
    return await this.call('note', () => {
      if (this.texts.get(name) !== from) return false
      this.texts.set(name, to)
      return true
    })
  }

  async close(): Promise<void> {}

  private get texts(): Map<string, string> {
    return this.shared.notes as Map<string, string>
  }

  private async call<Answer>(name: Call, answer: () => Answer): Promise<Answer> {
    await this.reach(name, 'before')
    const given = answer()
    await this.reach(name, 'behind')
    return given
  }

  private async reach(name: Call, when: 'before' | 'behind'): Promise<void> {
    try {
      await this.onTheWay(name, when)
    } catch (error) {
      throw new StoreUnavailableError(error)
    }
  }
}
