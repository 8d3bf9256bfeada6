import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { assembleBeef } from '../../backend/src/graph/assemble-beef.js'
import type { TransactionReader } from '../../backend/src/graph/graph-store.js'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { parentsFirst } from '../../backend/src/graph/parents-first.js'
import { type BeefContents, readBeef } from '../../backend/src/graph/read-beef.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import {
  readTransaction,
  TransactionError,
  type TransactionView,
} from '../../backend/src/protocol/transaction.js'
import { plainBytes } from '../server/plain-bytes.js'

/** A path that cannot be read. */
export class ImportError extends Error {
  override readonly name = 'ImportError'
}

/** A transaction found in a file; `beef` where it came in one, and so with its proof or ancestry. */
export interface FoundTransaction {
  view: TransactionView
  beef?: BeefContents
}

export interface FoundFiles {
  /** Each transaction once, parents before children. */
  transactions: FoundTransaction[]
  /** Files that are neither BEEF nor raw transactions, and lines of hex that are neither, as `<file>:<line>`. */
  skipped: string[]
}

/**
 * Reads files, and whatever stands in folders, for BEEF and raw transactions, as bytes or as hex, one a line.
 *
 * @throws ImportError where a path cannot be read.
 */
export async function findTransactions(paths: string[]): Promise<FoundFiles> {
  const found = new Map<string, FoundTransaction>()
  const skipped: string[] = []
  for (const path of paths) {
    for (const file of await filesAt(path)) {
      const items = readItems(await readable(readFile(file), file))
      const useless = items.filter(({ transactions }) => transactions.length === 0)
      if (useless.length === items.length) skipped.push(file)
      else skipped.push(...useless.map(({ line }) => `${file}:${line}`))
      for (const transaction of items.flatMap(({ transactions }) => transactions)) {
        const { txid } = transaction.view
        if (tells(transaction) > tells(found.get(txid))) found.set(txid, transaction)
      }
    }
  }
  return {
    transactions: parentsFirst(found, ({ view }) => view.inputs.map((input) => input.txid)),
    skipped,
  }
}

async function filesAt(path: string): Promise<string[]> {
  if (!(await readable(stat(path), path)).isDirectory()) return [path]
  const entries = await readable(readdir(path, { recursive: true, withFileTypes: true }), path)
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

async function readable<Result>(reading: Promise<Result>, path: string): Promise<Result> {
  try {
    return await reading
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new ImportError(`cannot read ${path}: ${reason}`, { cause })
  }
}

/** How much a find tells of its transaction: with its proof more than without, and with ancestors more than alone. */
function tells(transaction: FoundTransaction | undefined): number {
  if (transaction === undefined) return 0
  const { view, beef } = transaction
  if (beef === undefined) return 1
  try {
    return beef.proof(view.txid) === undefined ? 2 : 3
  } catch (error) {
    // A proof that does not hold together is as good as none; whoever imports it says why.
    if (error instanceof BeefError) return 2
    throw error
  }
}

interface FileItem {
  /** The line of the file that it stands in, from 1. */
  line: number
  /** None where it is something else. */
  transactions: FoundTransaction[]
}

/** What a file holds: bytes as they are, or lines of hex. */
function readItems(bytes: Uint8Array): FileItem[] {
  const lines = hexLines(bytes)
  if (lines === undefined) return [{ line: 1, transactions: readItem(plainBytes(bytes)) }]
  return lines.map(({ line, hex }) => ({ line, transactions: readItem(plainBytes(Buffer.from(hex, 'hex'))) }))
}

function hexLines(bytes: Uint8Array): { line: number; hex: string }[] | undefined {
  // A hundred bytes tell text from bytes without turning a large file into a string.
  if (!/^[0-9a-fA-F\s]+$/.test(Buffer.from(bytes.subarray(0, 100)).toString('latin1'))) return undefined
  const lines = Buffer.from(bytes)
    .toString('latin1')
    .split(/\r\n?|\n/)
    .map((text, index) => ({ line: index + 1, hex: text.trim() }))
    .filter(({ hex }) => hex !== '')
  return lines.every(({ hex }) => hex.length % 2 === 0 && /^[0-9a-fA-F]+$/.test(hex)) ? lines : undefined
}

function readItem(bytes: Uint8Array): FoundTransaction[] {
  try {
    const beef = readBeef(bytes)
    return beef.txids.flatMap((txid) => {
      const view = beef.transaction(txid)
      return view === undefined ? [] : [{ view, beef }]
    })
  } catch (error) {
    if (!(error instanceof BeefError)) throw error
  }
  try {
    return [{ view: readTransaction(bytes, { hash: nativeHash256 }) }]
  } catch (error) {
    if (!(error instanceof TransactionError)) throw error
    return []
  }
}

/** The BEEF of one of the transactions of a larger one, with those whose values place its ordinals, proven or not. */
export async function cutOut({ txid, inputs }: TransactionView, beef: BeefContents): Promise<Uint8Array> {
  const source: TransactionReader = {
    transaction: async (wanted) => {
      const view = beef.transaction(wanted)
      const proof = view && beef.proof(wanted)
      return view && { txid: wanted, raw: view.raw, ...(proof && { proof }) }
    },
  }
  const sources = inputs.map((input) => input.txid).filter((each) => beef.transaction(each) !== undefined)
  const cut = await assembleBeef([...new Set(sources), txid], source)
  if (cut === undefined) throw new Error(`${txid} is not in the BEEF it was found in`)
  return cut
}
