import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { Sql } from '../../../../backend/src/facts/connection.js'
import type { LocalLog } from '../../../../backend/src/facts/local-log.js'
import type { Fact } from '../../../../backend/src/facts/log.js'
import { isPurged } from '../../../../backend/src/facts/registers.js'
import type { AdmissionOptions } from '../../../../backend/src/graph/admission-rules.js'
import { DamagedError } from '../../../../backend/src/graph/errors.js'
import { canonicalRows } from '../../../../backend/src/index/canonical.js'
import { toHex } from '../../../../backend/src/protocol/bytes.js'
import { openIndex } from '../../../../backend/src/writer/catch-up.js'
import { storeFiles } from '../../../../backend/src/writer/local-writer.js'
import type { Config } from '../../config/config.js'
import { BackupError } from '../backup/backup-tables.js'
import { treeIn } from './build-index.js'
import { readLog } from './folder.js'
import { FACT_NAMES, isSound } from './verify-fact.js'

/** Facts that are applied in one transaction. */
const PAGE = { limit: 500, maxBytes: 8 * 1024 * 1024 }

/** What is wrong with a store of facts: a fact, or rows of a table of the index. */
export interface FactDamage {
  /** What of it; `index` for rows that a new index has not, or not so. */
  kind: string
  /** The key of the fact in hex, or the name of the table. */
  id: string
  problem: 'damaged' | 'differs'
  /** Of a table: how many rows. */
  rows?: number
}

export interface FactCheckOptions {
  config: Config
  /** By which rules the index is derived, with the tree of the log in the settings. */
  admission: (config: Config) => AdmissionOptions
  signal: AbortSignal
  onDamage: (damage: FactDamage) => void
  onProgress: (checked: { facts: number; share: number }) => void
}

/**
 * Verifies every fact against its key, and compares the index with one that is derived again, in a temporary folder, while the
 * service runs.
 *
 * @returns How many facts, how long their bodies are, and whether there is an index, and it was compared.
 * @throws BackupError if there is no log; the reason of the signal.
 */
export async function checkFacts(
  options: FactCheckOptions,
): Promise<{ facts: number; bytes: number; isCompared: boolean }> {
  const { dataDir } = options.config
  const checking = readLog(dataDir, async (log) => {
    let isDamaged = false
    const onDamage = (damage: FactDamage): void => {
      isDamaged = true
      options.onDamage(damage)
    }
    const checked = await checkLog(log, { ...options, onDamage })
    // Of damaged facts follows no index to compare with.
    const isCompared = !isDamaged && (await checkIndex(log, options))
    return { ...checked, isCompared }
  })
  if (checking === undefined) throw new BackupError(`there is no log of facts in ${dataDir}`)
  return await checking
}

async function checkLog(
  log: LocalLog,
  { signal, onDamage, onProgress }: FactCheckOptions,
): Promise<{ facts: number; bytes: number }> {
  const { last } = log
  const checked = { facts: 0, bytes: 0 }
  for (let place = 1; place <= last; place++) {
    signal.throwIfAborted()
    const fact = readFact(log, place, onDamage)
    if (fact !== undefined) {
      if (!isSound(fact) && !isPurged(log, fact))
        onDamage({ kind: FACT_NAMES[fact.kind], id: toHex(fact.key), problem: 'damaged' })
      checked.bytes += fact.body.length
      checked.facts++
    }
    if (place % 100 === 0) await setImmediate()
    onProgress({ facts: checked.facts, share: place / last })
  }
  return checked
}

/** Undefined if there is none at that place, or it cannot be read. */
function readFact(log: LocalLog, place: number, onDamage: FactCheckOptions['onDamage']): Fact | undefined {
  try {
    const [fact] = log.after(place - 1, { limit: 1, maxBytes: 0 })
    return fact?.seq === place ? fact : undefined
  } catch (error) {
    if (!(error instanceof DamagedError)) throw error
    const { kind, key } = log.keyAt(place) ?? {}
    onDamage({
      kind: kind ? FACT_NAMES[kind] : 'fact',
      id: toHex(key ?? new Uint8Array()),
      problem: 'damaged',
    })
    return undefined
  }
}

/** @returns False if there is no index: of a copy that no service was started on, or after a setting was replaced. */
async function checkIndex(
  log: LocalLog,
  { config, admission, signal, onDamage }: FactCheckOptions,
): Promise<boolean> {
  const { index: filename } = storeFiles(config.dataDir)
  if (!existsSync(filename)) return false
  const index = new Sql(filename)
  const folder = await mkdtemp(join(tmpdir(), 'minetree-check-'))
  const derived = new Sql(join(folder, 'index.db'))
  try {
    index.exec('pragma query_only = on; begin;')
    if (index.get("select 1 as one from sqlite_master where name = 'meta'") === undefined) return false
    const cursor = Number(index.get("select value from meta where name = 'cursor'")?.value ?? 0)
    derived.exec('pragma journal_mode = off; pragma synchronous = off;')
    await derive(derived, { log, config, admission, to: cursor, signal })
    const options = { scores: true }
    const [stored, wanted] = [canonicalRows(index, options), canonicalRows(derived, options)]
    for (const table of new Set([...Object.keys(stored), ...Object.keys(wanted)])) {
      const rows = difference(stored[table] ?? [], wanted[table] ?? [])
      if (rows > 0) onDamage({ kind: 'index', id: table, problem: 'differs', rows })
    }
    return true
  } finally {
    index.close()
    derived.close()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Derives an index up to a place: the log may have gone on since. */
async function derive(
  indexFile: Sql,
  {
    log,
    config,
    admission,
    to,
    signal,
  }: Pick<FactCheckOptions, 'config' | 'admission' | 'signal'> & { log: LocalLog; to: number },
): Promise<void> {
  const { rules } = admission(treeIn(log, config))
  const index = openIndex({ log, indexFile }, { rules })
  while (index.cursor < to) {
    signal.throwIfAborted()
    const facts = log.after(index.cursor, PAGE).filter(({ seq }) => seq <= to)
    if (facts.length === 0) return
    indexFile.exec('begin')
    index.apply(facts)
    index.flush()
    indexFile.exec('commit')
    await setImmediate()
  }
}

/** How many rows one list has that the other has not, either way. */
function difference(some: string[], others: string[]): number {
  const [one, other] = [new Set(some), new Set(others)]
  return some.filter((row) => !other.has(row)).length + others.filter((row) => !one.has(row)).length
}
