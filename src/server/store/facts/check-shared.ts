import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT, type Fact } from '../../../../backend/src/facts/log.js'
import { isPurged, readRegisterFact } from '../../../../backend/src/facts/registers.js'
import { CHANGE, type LogRow, type Place, START } from '../../../../backend/src/facts/shared-log.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { equalBytes, toHex } from '../../../../backend/src/protocol/bytes.js'
import { type DatabasePlace, withSharedLog } from './log-place.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

const PAGE = { limit: 500, maxBytes: 8 * 1024 * 1024 }

/** What is wrong with a store of facts: a fact, or rows of a table of the index. */
export interface FactDamage {
  /** The kind of fact, or the table; `index` for its file, or rows that a new index has not, or not so; `copy of …` for what a gateway has of the log. */
  kind: string
  /** The key of the fact in hex, or its place if that cannot be read; the name of the table or the file. */
  id: string
  problem: 'damaged' | 'differs' | 'missing'
  /** Of a table: how many rows. */
  rows?: number
}

/** How many facts were verified, and how long their bodies are. */
export interface Checked {
  facts: number
  bytes: number
}

export interface LogCheckOptions {
  signal: AbortSignal
  onDamage: (damage: FactDamage) => void
  onProgress: (checked: { facts: number; share: number }) => void
}

interface SharedCheckOptions extends LogCheckOptions {
  /** What this host has copied of the log. */
  copy?: LocalLog
}

/** Verifies every fact of a log in a database against its key, and compares a copy with it, page by page, beside gateways that write. */
export async function checkShared(place: DatabasePlace, options: SharedCheckOptions): Promise<Checked> {
  return await withSharedLog(place, { exists: true }, async (shared) => {
    const { signal, onProgress, onDamage } = options
    const last = await shared.last()
    const check = new SharedCheck(options)
    for (let place: Place = START; place.seq < last; ) {
      signal.throwIfAborted()
      const damaged = new Set<number>()
      const rows = await shared.after(place, { ...PAGE, onDamage: ({ seq }) => damaged.add(seq) })
      let next = place.seq + 1
      for (const row of rows) {
        for (; next < row.seq; next++) onDamage({ kind: 'fact', id: String(next), problem: 'missing' })
        next = row.seq + 1
        check.look(row, damaged.has(row.seq))
      }
      place = rows.at(-1) ?? { ...place, seq: last }
      onProgress({ facts: check.checked.facts, share: place.seq / last })
    }
    check.end()
    return check.checked
  })
}

class SharedCheck {
  readonly checked: Checked = { facts: 0, bytes: 0 }
  /** Transactions that are not what their keys say, which holds for those that something was removed from. */
  private readonly unsound = new Map<string, FactDamage>()
  private readonly copied: number

  constructor(private readonly options: SharedCheckOptions) {
    this.copied = options.copy?.last ?? 0
  }

  look(row: LogRow, isDamaged: boolean): void {
    const { kind, key, body, at, seq } = row
    if (kind === CHANGE) return
    const damage: FactDamage = { kind: FACT_NAMES[kind], id: toHex(key), problem: 'damaged' }
    // What was removed as a whole has its place alone.
    if (body === undefined) {
      if (isDamaged) this.options.onDamage(damage)
      return
    }
    this.checked.facts++
    this.checked.bytes += body.length
    const fact: Fact = { kind, key, body, at, seq }
    if (!isSound(fact)) this.unsound.set(toHex(key), damage)
    else if (kind === FACT.register) this.lookAtRegister(fact)
    if (seq <= this.copied) this.compare(fact)
  }

  end(): void {
    for (const damage of this.unsound.values()) this.options.onDamage(damage)
  }

  private lookAtRegister(fact: Fact): void {
    const [kind, outpoint = ''] = readRegisterFact(fact).subject.split(' ')
    if (kind === 'purged') this.unsound.delete(outpoint.split('_')[0] ?? '')
  }

  /** A copy may have overwritten earlier than the log, or later, what was removed. */
  private compare(fact: Fact): void {
    const { copy, onDamage } = this.options
    if (copy === undefined || isPurged(copy, fact.key)) return
    const own = copyOf(copy, fact.seq)
    const isEqual =
      own?.kind === fact.kind && equalBytes(own.key, fact.key) && equalBytes(own.body, fact.body)
    const isRemoved = (own?.kind as number | undefined) === CHANGE && fact.kind === FACT.body
    if (!isEqual && !isRemoved)
      onDamage({ kind: `copy of ${FACT_NAMES[fact.kind]}`, id: toHex(fact.key), problem: 'differs' })
  }
}

/** The fact at a place of a copy; undefined if there is none, or it is damaged, which is found where the copy is verified. */
function copyOf(copy: LocalLog, seq: number): Fact | undefined {
  try {
    return copy.after(seq - 1, { limit: 1, maxBytes: 0 }).find((fact) => fact.seq === seq)
  } catch (error) {
    if (isDamage(error)) return undefined
    throw error
  }
}
