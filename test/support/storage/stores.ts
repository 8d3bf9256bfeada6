import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Sql } from '../../../backend/src/facts/connection.js'
import { LocalLog } from '../../../backend/src/facts/local-log.js'
import type { AdmissionOptions } from '../../../backend/src/graph/admission-rules.js'
import { admissionRules } from '../../../backend/src/graph/topic-rules.js'
import { canonicalRows } from '../../../backend/src/index/canonical.js'
import { FactStore } from '../../../backend/src/read/fact-store.js'
import { Reader } from '../../../backend/src/read/reader.js'
import { catchUp, makeIndex, openIndex } from '../../../backend/src/writer/catch-up.js'
import { LocalWriter, storeFiles } from '../../../backend/src/writer/local-writer.js'
import { recordOf } from '../protocol/block.js'
import type { FakeTransaction } from '../protocol/fake-chain.js'
import { storedRows } from './fact-rows.js'

/** An open store that derives admissions, and what tests do behind its back. */
export interface DerivingStore {
  store: FactStore & {
    /** From now on its index is derived by these rules. */
    deriveBy(admission: AdmissionOptions): void
  }
  /** Another store over the same data, that was not opened. */
  another(): DerivingStore['store']
  /** What it holds, by table, as text, without what depends on the order of arrival. */
  rows(): Record<string, string[]>
  /** What is in use of the log and of the index. */
  bytes(): number
  /** Makes the log refuse every new fact until what it gives is called. */
  breakInserts(): Promise<() => Promise<void>>
  /** Derives everything again, and expects the same. */
  rebuild(): Promise<void>
  close(): Promise<void>
}

/** A transaction, and the height of the block that proves it; undefined if none does. */
export interface Arrival {
  transaction: FakeTransaction
  height?: number | undefined
}

/** Records a transaction as if it was submitted, with others that came along. */
export async function record(
  { store }: Pick<DerivingStore, 'store'>,
  arrival: Arrival,
  ...along: Arrival[]
): Promise<void> {
  const all = [arrival, ...along]
  const transactions = all.map(({ transaction, height }) => recordOf(transaction, height))
  await store.record(transactions, { subjects: [arrival.transaction.txid] })
}

/** No tree, until a test says otherwise. */
const NO_TREE: AdmissionOptions = {
  rules: admissionRules({ deployment: undefined }),
  pending: { maxTransactions: 1000, maxBytes: 64 * 1024 * 1024 },
}

/**
 * Opens a fresh log and its index in a folder of their own, for as long as the test runs.
 *
 * @param options.stays For all tests of a file, which closes it.
 */
export async function openStore({ stays = false } = {}): Promise<DerivingStore> {
  const folder = await mkdtemp(join(tmpdir(), 'minetree-'))
  const files = storeFiles(folder)
  const writer = new LocalWriter({ folder })
  const readers: Reader[] = []
  let admission = NO_TREE
  const open = (): DerivingStore['store'] => {
    const reader = new Reader(files)
    readers.push(reader)
    return Object.assign(new FactStore({ reader, writer }), {
      deriveBy(rules: AdmissionOptions): void {
        admission = rules
        writer.deriveBy(rules)
      },
    })
  }
  let closed: Promise<void> | undefined
  const close = async (): Promise<void> => {
    await writer.close()
    for (const reader of readers) reader.close()
    await rm(folder, { recursive: true })
  }
  const store = open()
  store.deriveBy(admission)
  await writer.opened
  const made: DerivingStore = {
    store,
    another: open,
    rows: () => storedRows(folder),
    bytes: () => Object.values(files).reduce((sum, file) => sum + withFile(file, usedBytes), 0),
    async rebuild() {
      const logFile = new Sql(files.log)
      const indexFile = new Sql(join(folder, 'again.db'))
      const derivation = { log: new LocalLog(logFile), indexFile }
      makeIndex(derivation.indexFile)
      const index = openIndex(derivation, admission)
      await catchUp(derivation, { index, onProgress: () => {}, isAborted: () => false })
      const [again, before] = [canonicalRows(indexFile), withFile(files.index, canonicalRows)]
      for (const sql of [logFile, indexFile]) sql.close()
      await rm(join(folder, 'again.db'))
      expect(again).toEqual(before)
    },
    async breakInserts() {
      const full = "select raise(abort, 'the disk is full')"
      withFile(files.log, (sql) => sql.exec(`create trigger broken before insert on log begin ${full}; end`))
      return async () => withFile(files.log, (sql) => sql.exec('drop trigger broken'))
    },
    close() {
      closed ??= close()
      return closed
    },
  }
  if (!stays) onTestFinished(made.close)
  return made
}

export function withFile<Found>(path: string, read: (sql: Sql) => Found): Found {
  const sql = new Sql(path)
  try {
    return read(sql)
  } finally {
    sql.close()
  }
}

function usedBytes(sql: Sql): number {
  const row = sql.get(
    `select (page_count - freelist_count) * page_size as bytes
     from pragma_page_count, pragma_freelist_count, pragma_page_size`,
  )
  return Number(row?.bytes)
}
