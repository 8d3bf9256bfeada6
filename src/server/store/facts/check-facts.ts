import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Sql } from '../../../../backend/src/facts/connection.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import { FACT, type Fact, isTransaction } from '../../../../backend/src/facts/log.js'
import {
  isPurged,
  type PurgedValue,
  readNumberedKey,
  readRegisterFact,
} from '../../../../backend/src/facts/registers.js'
import { CHANGE } from '../../../../backend/src/facts/shared-log.js'
import { isDamage } from '../../../../backend/src/graph/errors.js'
import { canonicalRows } from '../../../../backend/src/index/canonical.js'
import { equalBytes, fromHex, toHex } from '../../../../backend/src/protocol/bytes.js'
import { isIndexOf } from '../../../../backend/src/writer/catch-up.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import { goneRow } from '../../../../backend/src/writer/mirror.js'
import { readStateChange } from '../../../../backend/src/writer/state-changes.js'
import { storeFolder } from '../../config/place.js'
import { type DeriveOptions, deriveIndex } from './build-index.js'
import { damageOf, readFolder } from './folder.js'
import { type CommandLog, FolderLog, type FoundRow, pagesOf } from './folder-log.js'
import { logPlaceIn, readLog } from './log-place.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

export interface FactDamage {
  /** The kind of fact; a table whose rows differ from a new index; `index` for its file; `copy of …` for a gateway's copy. */
  kind: string
  /** The key of the fact in hex, or its place if the key cannot be read; the name of the table or the file. */
  id: string
  problem: 'damaged' | 'differs' | 'missing'
  /** For a table: the number of rows. */
  rows?: number
}

interface Checked {
  facts: number
  bytes: number
}

export interface FactCheckOptions extends Omit<DeriveOptions, 'onProgress'> {
  onDamage: (damage: FactDamage) => void
  onProgress: (checked: { facts: number; share: number }) => void
}

/**
 * Verifies every fact against its key, and compares the index with a newly derived one, in a temporary folder, while the service
 * runs. If the log is in a database, this host's copy is compared with it, too.
 *
 * @returns How many facts there are, how long their bodies are, and whether there was an index to compare.
 * @throws as {@link readLog}; the reason of the signal.
 */
export async function checkFacts(options: FactCheckOptions): Promise<Checked & { isCompared: boolean }> {
  const [folder, place] = [storeFolder(options.config), logPlaceIn(options.config)]
  let isDamaged = false
  const onDamage = (damage: FactDamage): void => {
    isDamaged = true
    options.onDamage(damage)
  }
  const check = (log: CommandLog, copy?: LocalLog): Promise<Checked> =>
    new LogCheck({ ...options, onDamage, copy }).run(log)
  if (!('folder' in place) && !existsSync(storeFiles(folder).log))
    return { ...(await readLog(place, check)), isCompared: false }
  return await readFolder(folder, async (own) => {
    const shared = 'folder' in place ? undefined : await readLog(place, (log) => check(log, own.log))
    // Facts of a log in a database were counted there.
    const checked = await new LogCheck({ ...options, onDamage, ...(shared && { onProgress() {} }) }).run(own)
    // Damaged facts give no index to compare with.
    const isCompared = !isDamaged && (await checkIndex(own.log, options))
    return { ...(shared ?? checked), isCompared }
  })
}

interface LogCheckOptions extends Pick<FactCheckOptions, 'signal' | 'onDamage' | 'onProgress'> {
  /** This host's copy of a log in a database. */
  copy?: LocalLog | undefined
}

export class LogCheck {
  private readonly checked: Checked = { facts: 0, bytes: 0 }
  /** Facts that do not match their keys or the copy, which includes those from which content was removed. */
  private readonly unsound = new Map<string, FactDamage>()
  private readonly copied: number

  constructor(private readonly options: LogCheckOptions) {
    this.copied = options.copy?.last ?? 0
  }

  async run(log: CommandLog): Promise<Checked> {
    const { signal, onProgress, onDamage } = this.options
    const last = await log.last()
    const damaged = new Set<number>()
    const isFolder = log instanceof FolderLog
    let next = 1
    for await (const rows of pagesOf(log, { onDamage: ({ seq }) => damaged.add(seq) })) {
      signal.throwIfAborted()
      for (const row of rows) {
        // A log in a folder has gaps where something was pruned.
        for (; next < (row.seq ?? 0); next++)
          if (!isFolder) onDamage({ kind: 'fact', id: String(next), problem: 'missing' })
        next = (row.seq ?? next) + 1
        // A copy has only the places of changes. What is pending follows its rows.
        if (isFolder && row.kind === CHANGE && row.seq !== undefined) continue
        this.look(row, damaged.delete(row.seq ?? 0))
      }
      onProgress({ facts: this.checked.facts, share: Math.min(1, next / last) })
      await setImmediate()
    }
    for (const damage of this.unsound.values()) onDamage(damage)
    return this.checked
  }

  private look(row: FoundRow, isDamaged: boolean): void {
    const { kind, key, body, at = 0, seq = 0 } = row
    if (kind === CHANGE) {
      this.lookAtChange(row)
      return
    }
    const isKnown = key.length > 0
    const named = isKnown ? { kind: FACT_NAMES[kind], id: toHex(key) } : { kind: 'fact', id: String(seq) }
    const damage: FactDamage = { ...named, problem: 'damaged' }
    // Of a row that was removed entirely, only its place is left.
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

  private lookAtRegister(fact: Fact): void {
    const { subject, value } = readRegisterFact(fact)
    const [kind, outpoint = ''] = subject.split(' ')
    if (kind !== 'purged') return
    this.unsound.delete(outpoint.split('_')[0] ?? '')
    // A body that is a fact of its own is overwritten before it is discarded.
    this.unsound.delete((value as PurgedValue).sha256)
  }

  private lookAtChange(row: FoundRow): void {
    const [table, id = ''] = readNumberedKey(row.key).subject.split(' ')
    if (table !== 'pending') return
    const { bytes } = readStateChange(row) ?? {}
    if (bytes !== undefined && bytes.length > 0 && !isTransaction(bytes, fromHex(id)))
      this.options.onDamage({ kind: 'pending transaction', id, problem: 'damaged' })
  }

  /** Either may have overwritten removed content before the other: then a register follows in the log. */
  private compare(fact: Fact): void {
    const { copy } = this.options
    if (copy === undefined || isPurged(copy, fact.key)) return
    const own = copyOf(copy, fact.seq)
    const isEqual =
      own?.kind === fact.kind && equalBytes(own.key, fact.key) && equalBytes(own.body, fact.body)
    const isRemoved = own !== undefined && equalBytes(own.key, goneRow(fact).key)
    const id = toHex(fact.key)
    if (!isEqual && !isRemoved && !this.unsound.has(id))
      this.unsound.set(id, { kind: `copy of ${FACT_NAMES[fact.kind]}`, id, problem: 'differs' })
  }
}

/** The fact at a place of a copy; undefined if there is none, or it is damaged, which the check of the copy reports. */
function copyOf(copy: LocalLog, seq: number): Fact | undefined {
  try {
    return copy.after(seq - 1, { limit: 1, maxBytes: 0 }).find((fact) => fact.seq === seq)
  } catch (error) {
    if (isDamage(error)) return undefined
    throw error
  }
}

/** @returns False if there is no index, because no service was started on this copy yet, or a setting was replaced. */
async function checkIndex(log: LocalLog, options: FactCheckOptions): Promise<boolean> {
  const { index: filename } = storeFiles(storeFolder(options.config))
  if (!existsSync(filename)) return false
  const folder = await mkdtemp(join(tmpdir(), 'minetree-check-'))
  const [index, derived] = [new Sql(filename), new Sql(join(folder, 'index.db'))]
  const onDamage = (): void => options.onDamage({ kind: 'index', id: filename, problem: 'damaged' })
  try {
    if (damageOf(filename) !== undefined) onDamage()
    else return await compareIndex(index, { ...options, log, derived })
  } catch (error) {
    if (!isDamage(error)) throw error
    onDamage()
  } finally {
    index.close()
    derived.close()
    await rm(folder, { recursive: true, force: true })
  }
  return true
}

async function compareIndex(
  index: Sql,
  { derived, ...options }: FactCheckOptions & { log: LocalLog; derived: Sql },
): Promise<boolean> {
  const { log, onDamage, config, signal } = options
  index.exec('pragma query_only = on')
  if (!isIndexOf({ log, indexFile: index })) return false
  derived.exec('pragma journal_mode = off; pragma synchronous = off;')
  const derive = (to: number): Promise<void> =>
    deriveIndex({ log, indexFile: derived }, { config, signal, to })
  const cursor = (): number => Number(index.get('select cursor from counts where id = 1')?.cursor)
  const first = cursor()
  await derive(first)
  // Only the rest is derived with an open snapshot, which makes the WAL of a running service grow.
  index.exec('begin')
  const to = cursor()
  // The service has started to derive its index again.
  if (to < first || !isIndexOf({ log, indexFile: index })) return false
  await derive(to)
  const [stored, wanted] = [index, derived].map((sql) => canonicalRows(sql, { scores: true }))
  for (const table of Object.keys(wanted ?? {})) {
    const rows = difference(stored?.[table] ?? [], wanted?.[table] ?? [])
    if (rows > 0) onDamage({ kind: 'index', id: table, problem: 'differs', rows })
  }
  return true
}

function difference(some: string[], others: string[]): number {
  const [one, other] = [new Set(some), new Set(others)]
  return some.filter((row) => !other.has(row)).length + others.filter((row) => !one.has(row)).length
}
