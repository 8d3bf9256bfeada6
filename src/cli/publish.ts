import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import { equalBytes } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { PROFILES, TOPICS } from '../../backend/src/protocol/profile.js'
import { REDIRECTS_FILE, RedirectsError, readRedirects } from '../../backend/src/protocol/redirects.js'
import { NOBODY_LOCK } from '../payments/fake.js'
import { DEFAULT_FEE_RATE } from '../payments/key.js'
import type { FolderEntry } from '../publish/content-tree.js'
import { DEFAULT_STREAM_CHUNK_SIZE, layOutStreamChunk, streamChunkCount } from '../publish/file.js'
import type { DirectoryFormat } from '../publish/folder.js'
import { planSite } from '../publish/plan.js'
import { transactionSize } from '../publish/transaction-size.js'
import { CommandError, ownerLock, usageError } from './command.js'
import { type FakeTransaction, fundedTransaction, spendingTransaction } from './fake-transactions.js'
import { bytesText, type CommandOutput, grouped } from './output.js'
import { OverlayServer } from './overlay-server.js'
import {
  countOf,
  type FoundEntry,
  type FoundFile,
  findAt,
  hashOf,
  type LeftOut,
  readChunks,
  readEntries,
  sizeOf,
} from './publish-files.js'

const profile = PROFILES.local

export interface PublishOptions {
  path: string
  /** Publishes a file as a stream, in chunks of 1 MiB, or of `chunkSize` bytes, which implies a stream. */
  stream: boolean
  chunkSize?: number
  format: DirectoryFormat
  /** The most transactions that are submitted. */
  maxTransactions: number
  /** The owner's P2PKH address. */
  owner?: string
  url: string
  output: CommandOutput
  signal: AbortSignal
}

/** How many of the files that are left out are listed. */
const MAX_LEFT_OUT_LINES = 20

/**
 * Publishes a file or a folder to a local network, after reporting what is left out, its size, and what it would cost on the live
 * network.
 *
 * @throws CommandError; PublishError if a folder cannot be laid out.
 */
export async function runPublish(options: PublishOptions): Promise<void> {
  const { path, chunkSize, url, output, maxTransactions, signal } = options
  const stream = options.stream || chunkSize !== undefined
  const lock = options.owner === undefined ? NOBODY_LOCK : ownerLock(options.owner)
  const { found, leftOut } = await findAt(path, basename(resolve(path)))
  if (stream && found.kind === 'folder')
    throw usageError(
      `${path} is a folder, but only a file can be a stream: leave out --stream and --chunk-size`,
    )
  const bytes = sizeOf(found)
  const size = chunkSize ?? DEFAULT_STREAM_CHUNK_SIZE
  const transactions = stream ? streamChunkCount(bytes, size) : 1
  if (transactions > maxTransactions)
    throw usageError(
      `${path} has ${grouped(bytes)} bytes: in chunks of ${grouped(size)} that takes ${grouped(transactions)} transactions, but --max-transactions allows ${grouped(maxTransactions)}; use a larger --chunk-size, or raise --max-transactions`,
    )
  noteLeftOut(leftOut, output)
  const server = new OverlayServer(url, signal)
  await server.requireLocal()
  const addressOf = await server.sites()
  const result = { transactions, bytes, files: countOf(found), leftOut }
  if (stream && found.kind === 'file') {
    output.note(costText(found, streamSizes({ found, lock, chunkSize: size, transactions })))
    const txid = await publishStream({ server, found, lock, chunkSize: size, transactions, output, signal })
    const outpoint = formatOutpoint({ txid, vout: 0 })
    const address = `${server.url}${profile.gatewayPrefixes[0]}/stream/${outpoint}`
    output.result({ url: address, outpoint, ...result }, address)
    return
  }
  const site = await readEntries(found)
  noteRedirects(site, output)
  const { outputs, hasIndex } = planSite({ site, lock, profile, format: options.format })
  output.note(costText(found, [{ bytes: transactionSize({ inputs: 1, outputs }), count: 1 }]))
  const transaction = fundedTransaction(outputs)
  await submit(server, transaction, { outputs: outputs.length, called: found.path })
  const root = { txid: transaction.txid, vout: 0 }
  const host = addressOf({ outpoint: root })
  if (host === undefined) output.note(NO_HOSTS)
  const address = host ?? `${server.url}/content/${formatOutpoint(root)}/`
  output.result({ url: address, outpoint: formatOutpoint(root), ...result }, address)
  if (!hasIndex) output.note(NO_INDEX)
}

export const NO_HOSTS =
  'this server has no separate hosts for sites (GATEWAY_HOST): at this URL, links that begin with a slash lead outside the site'
export const NO_INDEX = 'the folder has no index.html: append the path of a file to this URL'

export function noteLeftOut(leftOut: readonly LeftOut[], output: CommandOutput): void {
  for (const { path, reason } of leftOut.slice(0, MAX_LEFT_OUT_LINES))
    output.note(`leaving out ${path}: ${reason}`)
  const more = leftOut.length - MAX_LEFT_OUT_LINES
  if (more > 0) output.note(`leaving out ${grouped(more)} more`)
}

/** Reports an error in the redirects of a site: gateways do not read a file with an invalid line. */
export function noteRedirects(site: FolderEntry, output: CommandOutput): void {
  const file = 'entries' in site ? site.entries.find(({ name }) => name === REDIRECTS_FILE) : undefined
  if (file === undefined || 'entries' in file) return
  try {
    readRedirects(file.bytes)
  } catch (error) {
    if (!(error instanceof RedirectsError)) throw error
    output.note(`${error.message}: until you correct it, paths that are missing from the site get an error`)
  }
}

/** @throws CommandError if the server does not admit all outputs. */
async function submit(
  server: OverlayServer,
  { beef }: FakeTransaction,
  { outputs, called }: { outputs: number; called: string },
): Promise<void> {
  const said = await server.submit({ beef, topics: [TOPICS.ordinals], outputs, called })
  if (said.kind === 'conflict') throw new CommandError(said.why, { exit: 'refused' })
  const left = outputs - (said.admitted[TOPICS.ordinals]?.outputsToAdmit.length ?? 0)
  if (left > 0)
    throw new CommandError(
      `${server.url} refuses ${left} of ${outputs} outputs of ${called}: its log says why`,
      { exit: 'refused' },
    )
}

/** Submits a stream chunk by chunk, one in memory at a time, and returns the txid of the first. */
async function publishStream(options: {
  server: OverlayServer
  found: FoundFile
  lock: Uint8Array
  chunkSize: number
  transactions: number
  output: CommandOutput
  signal: AbortSignal
}): Promise<string> {
  const { server, found, lock, chunkSize, transactions, output, signal } = options
  const { name, path } = found
  const sha256 = await hashOf(found)
  const published = createHash('sha256')
  let first: string | undefined
  let last: FakeTransaction | undefined
  let index = 0
  await output.showing(async (line) => {
    for await (const chunk of readChunks(found, chunkSize)) {
      signal.throwIfAborted()
      const laidOut = layOutStreamChunk({ name, chunk, index, sha256, lock, profile })
      last = last === undefined ? fundedTransaction([laidOut]) : spendingTransaction(last, laidOut)
      await submit(server, last, { outputs: 1, called: `chunk ${index} of ${path}` })
      published.update(chunk)
      first ??= last.txid
      index++
      line.update(() => ({
        text: `${grouped(index)} of ${grouped(transactions)} transactions`,
        share: index / transactions,
      }))
    }
  })
  if (first === undefined || !equalBytes(published.digest(), sha256))
    throw new CommandError(
      `${path} changed while it was published, so the server has another version: publish it again`,
    )
  return first
}

export interface TransactionSizes {
  bytes: number
  count: number
}

/** The sizes of a stream's transactions: each after the first spends the previous chunk and a coin. */
export function streamSizes(stream: {
  found: FoundFile
  lock: Uint8Array
  chunkSize: number
  transactions: number
}): TransactionSizes[] {
  const { found, lock, chunkSize, transactions } = stream
  const without = (index: number): number => {
    const chunk = { name: found.name, chunk: new Uint8Array(), index, sha256: new Uint8Array(32) }
    const output = layOutStreamChunk({ ...chunk, lock, profile: PROFILES.local })
    return transactionSize({ inputs: Math.min(index, 1) + 1, outputs: [output] })
  }
  const last = found.size - (transactions - 1) * chunkSize
  if (transactions === 1) return [{ bytes: without(0) + last, count: 1 }]
  return [
    { bytes: without(0) + chunkSize, count: 1 },
    { bytes: without(1) + chunkSize, count: transactions - 2 },
    { bytes: without(1) + last, count: 1 },
  ]
}

/**
 * One line with the size of a publication, and what it would cost.
 *
 * @param rate In satoshis per 1,000 bytes.
 */
export function costText(
  found: FoundEntry,
  sizes: readonly TransactionSizes[],
  rate = DEFAULT_FEE_RATE,
): string {
  const files = countOf(found)
  const sumOf = (of: (each: TransactionSizes) => number): number =>
    sizes.reduce((sum, each) => sum + each.count * of(each), 0)
  const transactions = sumOf(() => 1)
  const bytes = sumOf((each) => each.bytes)
  const satoshis = sumOf((each) => Math.ceil((each.bytes * rate) / 1000))
  return [
    `publishing ${grouped(files)} ${files === 1 ? 'file' : 'files'}, ${bytesText(sizeOf(found))},`,
    `in ${grouped(transactions)} ${transactions === 1 ? 'transaction' : 'transactions'}`,
    `of ${grouped(bytes)} bytes: on the live network a fee of about ${grouped(satoshis)} satoshis`,
    `(${rate} per 1,000 bytes), on a local network none`,
  ].join(' ')
}
