import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import { parentsFirst } from '../../backend/src/graph/ancestry.js'
import { nativeHash256 } from '../../backend/src/graph/native-hash.js'
import { type BeefContents, readBeef } from '../../backend/src/graph/read-beef.js'
import type { Proof } from '../../backend/src/graph/records.js'
import type { TransactionSource } from '../../backend/src/graph/stored-transaction.js'
import { assembleBeef } from '../../backend/src/graph/write-beef.js'
import { BeefError } from '../../backend/src/protocol/beef.js'
import {
  readTransaction,
  TransactionError,
  type TransactionView,
} from '../../backend/src/protocol/transaction.js'
import { usageError } from './command.js'
import { readable } from './user-files.js'

/** The largest BEEF or raw transaction that is read, in bytes: one at a time is held in memory. */
const MAX_ITEM_BYTES = 1024 ** 3
/** How many bytes of recently read items are cached, in addition to the largest one. */
const KEPT_BYTES = 64 * 1024 ** 2

/** The location of a BEEF or raw transaction: a whole file, or a line of hex in one. */
interface Item {
  file: string
  offset: number
  length: number
  isHex: boolean
}

interface Copy {
  item: Item
  kind: 'proven' | 'in BEEF' | 'raw'
  /** The block that its proof leads to, so that the same proof is recorded once. */
  block?: string
}

/** A transaction found in files. Its bytes are not held, only what is needed to order transactions. */
export interface FoundTransaction {
  txid: string
  bytes: number
  sources: string[]
  /** Its locations, with each proof once; the most complete come first. */
  copies: Copy[]
}

/**
 * The contents of files: BEEF and raw transactions, as bytes or as hex, one per line. Files are read one at a time, and
 * again when one of their transactions is needed, so memory does not grow with their size. Information about a transaction
 * from several files is combined: its proof may be in one and its sources in others.
 */
export class FoundFiles {
  /** Each transaction once, parents before children. */
  readonly transactions: FoundTransaction[]

  constructor(
    private readonly byTxid: ReadonlyMap<string, FoundTransaction>,
    /** Files, and lines of hex as `<file>:<line>`, that are neither BEEF nor raw transactions. */
    readonly skipped: string[],
    private readonly items: ReadItems,
  ) {
    this.transactions = parentsFirst(byTxid, ({ sources }) => sources)
  }

  has(txid: string): boolean {
    return this.byTxid.has(txid)
  }

  /** Whether it occurs in a BEEF, which has its proof or ancestors. */
  isInBeef({ copies }: FoundTransaction): boolean {
    return copies.some(({ kind }) => kind !== 'raw')
  }

  isProven({ copies }: FoundTransaction): boolean {
    return copies.some(({ kind }) => kind === 'proven')
  }

  /** Its size in a BEEF, with the transactions that it spends, in bytes. */
  bytesWithSources({ bytes, sources }: FoundTransaction): number {
    return sources.reduce((sum, txid) => sum + (this.byTxid.get(txid)?.bytes ?? 0), bytes)
  }

  async raw({ txid, copies }: FoundTransaction): Promise<Uint8Array> {
    const [copy] = copies
    const read = copy && (await this.read(copy, txid))
    if (read === undefined) throw usageError(`${txid} is no longer in its file`)
    return read.view.raw
  }

  /**
   * The BEEFs that may admit a transaction, the most complete first: one assembled from all files, with the values of the spent
   * coins, which place its ordinals whether it is proven or not; then each file's own, because one file may have a valid proof
   * and another an invalid one; then the same without those values, which may exceed the limits of a submission. Most
   * transactions occur once, with nothing else: their BEEFs are taken as they are.
   */
  async *beefsOf(transaction: FoundTransaction): AsyncGenerator<Uint8Array, void> {
    const { txid, sources, copies } = transaction
    const single = await this.singleBeefOf(transaction)
    if (single !== undefined) yield single
    const seen = new Set<string>()
    const readers = [
      this.everyFile(),
      ...copies
        .filter(({ kind }) => kind !== 'raw')
        .map((copy) => ({ get: async (txid: string) => recordOf(await this.read(copy, txid)) })),
    ]
    for (const placing of [sources, []])
      for (const reader of readers) {
        const known: string[] = []
        for (const source of placing) if ((await reader.get(source)) !== undefined) known.push(source)
        const beef = await assembleBeef([...known, txid], reader)
        if (beef === undefined) continue
        const hash = Buffer.from(nativeHash256(beef)).toString('hex')
        if (!seen.has(hash)) yield beef
        seen.add(hash)
      }
  }

  /** The BEEF of a transaction that is alone in it, if the files have nothing more about it. */
  private async singleBeefOf({ sources, copies }: FoundTransaction): Promise<Uint8Array | undefined> {
    const [copy] = copies
    if (copy === undefined || copies.length > 1 || sources.some((source) => this.has(source)))
      return undefined
    const { contents, bytes } = await this.itemOf(copy)
    return 'subject' in contents && contents.txids.length === 1 ? bytes : undefined
  }

  private everyFile(): TransactionSource {
    return {
      get: async (txid) => {
        const [copy] = this.byTxid.get(txid)?.copies ?? []
        return copy && recordOf(await this.read(copy, txid))
      },
    }
  }

  private async itemOf({ item }: Copy): Promise<ParsedItem> {
    const parsed = this.items.get(item) ?? parseItem(await readItem(item))
    if (parsed === undefined) throw usageError(`${item.file} changed while it was read`)
    this.items.set(item, parsed)
    return parsed
  }

  private async read(copy: Copy, txid: string): Promise<ReadCopy | undefined> {
    const { contents } = await this.itemOf(copy)
    if ('subject' in contents) {
      const view = contents.transaction(txid)
      return view && { view, proof: proofIn(contents, txid) }
    }
    return contents.txid === txid ? { view: contents, proof: undefined } : undefined
  }
}

/** The last items that were read: a small import reads its files once. */
class ReadItems {
  private readonly recent = new LRUCache<string, ParsedItem>({
    maxSize: KEPT_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length,
  })
  /** The last one, which may be longer than all others may be together. */
  private last: { key: string; item: ParsedItem } | undefined

  get({ offset, file }: Item): ParsedItem | undefined {
    const key = `${offset} ${file}`
    return this.last?.key === key ? this.last.item : this.recent.get(key)
  }

  set({ offset, file }: Item, item: ParsedItem): void {
    const key = `${offset} ${file}`
    this.last = { key, item }
    this.recent.set(key, item)
  }
}

interface ReadCopy {
  view: TransactionView
  proof: Proof | undefined
}

function recordOf(read: ReadCopy | undefined) {
  return read && { txid: read.view.txid, raw: read.view.raw, ...(read.proof && { proof: read.proof }) }
}

/**
 * Searches files, and all files in folders.
 *
 * @param onFile Called before each file, with the total number.
 * @throws CommandError (`usage`) if a path cannot be read.
 */
export async function findTransactions(
  paths: string[],
  onFile: (done: number, of: number) => void = () => {},
): Promise<FoundFiles> {
  const files: string[] = []
  for (const path of paths) files.push(...(await filesAt(path)))
  const found = new Map<string, FoundTransaction>()
  const skipped: string[] = []
  const read = new ReadItems()
  for (const [index, file] of files.entries()) {
    onFile(index, files.length)
    const useless: number[] = []
    let useful = 0
    for await (const { item, bytes, line } of itemsOf(file)) {
      const parsed = bytes && parseItem(bytes)
      if (parsed === undefined) {
        useless.push(line)
        continue
      }
      useful++
      read.set(item, parsed)
      for (const { view, kind, proof } of transactionsIn(parsed)) note(found, view, { item, kind }, proof)
    }
    if (useful === 0) skipped.push(file)
    else skipped.push(...useless.map((line) => `${file}:${line}`))
  }
  return new FoundFiles(found, skipped, read)
}

const RANKS = ['proven', 'in BEEF', 'raw'] as const

/** Records another copy of a transaction if it adds something: another proof, or a BEEF where there was none. */
function note(
  found: Map<string, FoundTransaction>,
  { txid, raw, inputs }: TransactionView,
  copy: Copy,
  proof: Proof | undefined,
): void {
  const noted = found.get(txid) ?? {
    txid,
    bytes: raw.length,
    sources: [...new Set(inputs.map((input) => input.txid))],
    copies: [],
  }
  found.set(txid, noted)
  const block = proof && `${proof.height} ${proof.root}`
  if (noted.copies.some((each) => each.kind === copy.kind && each.block === block)) return
  noted.copies.push({ ...copy, ...(block !== undefined && { block }) })
  noted.copies.sort((one, other) => RANKS.indexOf(one.kind) - RANKS.indexOf(other.kind))
}

interface ParsedItem {
  contents: BeefContents | TransactionView
  bytes: Uint8Array
}

function* transactionsIn({ contents }: ParsedItem): Generator<{
  view: TransactionView
  kind: Copy['kind']
  proof: Proof | undefined
}> {
  if (!('subject' in contents)) {
    yield { view: contents, kind: 'raw', proof: undefined }
    return
  }
  for (const txid of contents.txids) {
    const view = contents.transaction(txid)
    const proof = proofIn(contents, txid)
    if (view !== undefined) yield { view, kind: proof === undefined ? 'in BEEF' : 'proven', proof }
  }
}

/** An invalid proof counts as none; importing the transaction reports the reason. */
function proofIn(beef: BeefContents, txid: string): Proof | undefined {
  try {
    return beef.proof(txid)
  } catch (error) {
    if (error instanceof BeefError) return undefined
    throw error
  }
}

function parseItem(bytes: Uint8Array): ParsedItem | undefined {
  try {
    return { contents: readBeef(bytes), bytes }
  } catch (error) {
    if (!(error instanceof BeefError)) throw error
  }
  try {
    return { contents: readTransaction(bytes, { hash: nativeHash256 }), bytes }
  } catch (error) {
    if (error instanceof TransactionError) return undefined
    throw error
  }
}

async function filesAt(path: string): Promise<string[]> {
  const found = await readable(stat(path), path)
  // Files are read more than once, and a pipe may have no writer.
  if (!found.isDirectory() && !found.isFile())
    throw usageError(`cannot read ${path}: it is neither a file nor a folder`)
  if (!found.isDirectory()) return [path]
  const entries = await readable(readdir(path, { recursive: true, withFileTypes: true }), path)
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

interface ScannedItem {
  item: Item
  /** Undefined if a line is not hex. */
  bytes: Uint8Array | undefined
  /** Counted from 1. */
  line: number
}

const TEXT = /^[0-9a-fA-F\s]+$/
/** How many bytes are read to distinguish lines of hex from binary. */
const HEAD_BYTES = 100

/** The items in a file: its bytes, or its lines of hex, one in memory at a time. */
async function* itemsOf(file: string): AsyncGenerator<ScannedItem, void> {
  const { size } = await readable(stat(file), file)
  if (size === 0) return
  const head = await readable(readRange({ file, offset: 0, length: Math.min(size, HEAD_BYTES) }), file)
  if (TEXT.test(Buffer.from(head).toString('latin1'))) {
    yield* linesOf(file)
    return
  }
  requireSize(file, size)
  const item = { file, offset: 0, length: size, isHex: false }
  yield { item, bytes: await readItem(item), line: 1 }
}

const LINE_FEED = 0x0a

async function* linesOf(file: string): AsyncGenerator<ScannedItem, void> {
  let line = 0
  let offset = 0
  let parts: Buffer[] = []
  let length = 0
  const scanned = (last: Buffer): ScannedItem[] => {
    const text = Buffer.concat([...parts, last])
    const item = { file, offset, length: text.length, isHex: true }
    line++
    offset += text.length + 1
    parts = []
    length = 0
    return text.every(isBlank) ? [] : [{ item, bytes: decodeHex(text), line }]
  }
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      yield* scanned(chunk.subarray(from, at))
      from = at + 1
    }
    parts.push(chunk.subarray(from))
    length += chunk.length - from
    requireSize(file, length / 2)
  }
  yield* scanned(Buffer.alloc(0))
}

/** How many characters of hex are decoded at once: strings have a maximum length. */
const HEX_PART = 2 ** 20

/** Decodes a line of hex, ignoring surrounding spaces; undefined for anything else. */
function decodeHex(line: Buffer): Uint8Array | undefined {
  let [start, end] = [0, line.length]
  while (start < end && isBlank(line[start])) start++
  while (end > start && isBlank(line[end - 1])) end--
  if ((end - start) % 2 !== 0) return undefined
  const bytes = new Uint8Array((end - start) / 2)
  for (let at = start; at < end; at += HEX_PART) {
    const text = line.toString('latin1', at, Math.min(end, at + HEX_PART))
    const part = Buffer.from(text, 'hex')
    // Node stops at the first character that is not hex.
    if (part.length * 2 !== text.length) return undefined
    bytes.set(part, (at - start) / 2)
  }
  return bytes
}

/** Spaces, tabs, and carriage returns before line feeds. */
function isBlank(code: number | undefined): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0d
}

function requireSize(file: string, bytes: number): void {
  if (bytes > MAX_ITEM_BYTES)
    throw usageError(`cannot read ${file}: it holds more than ${MAX_ITEM_BYTES} bytes in one piece`)
}

async function readItem(item: Item): Promise<Uint8Array> {
  const bytes = await readable(readRange(item), item.file)
  return item.isHex ? (decodeHex(Buffer.from(bytes.buffer)) ?? new Uint8Array()) : bytes
}

async function readRange({ file, offset, length }: Omit<Item, 'isHex'>): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  let filled = 0
  for await (const chunk of createReadStream(file, { start: offset, end: offset + length - 1 })) {
    bytes.set(chunk as Buffer, filled)
    filled += (chunk as Buffer).length
  }
  if (filled < length) throw usageError(`${file} became shorter while it was read`)
  return bytes
}
