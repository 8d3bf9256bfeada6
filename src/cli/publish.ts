import { createHash } from 'node:crypto'
import { basename, resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { equalBytes } from '../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../backend/src/protocol/profile.js'
import { NOBODY_LOCK } from '../mining/made-up-mint.js'
import { DEFAULT_STREAM_CHUNK_SIZE, layOutFile, layOutStreamChunk } from '../publish/file.js'
import { layOutFolder } from '../publish/folder.js'
import type { PublishOutput } from '../publish/inscribe.js'
import { addressLock } from './address-lock.js'
import { CommandError } from './command-error.js'
import { LocalServer } from './local-server.js'
import { fundedTransaction, type MadeUpTransaction, spendingTransaction } from './made-up-money.js'
import { type Found, findAt, hashOf, readChunks, readWhole } from './publish-files.js'

const profile = PROFILES.local

export interface PublishOptions {
  path: string
  /** Publish a file as a stream, in chunks of 1 MiB; or of `chunkSize` bytes, which asks for a stream as well. */
  stream: boolean
  chunkSize?: number
  /** A P2PKH address. */
  owner?: string
  /** Of the server. */
  url: string
  /** Where the URL of what was published goes. */
  out: Writable
  /** Where remarks go. */
  notes: Writable
}

/**
 * Publishes a file or a folder to a local network.
 *
 * @throws CommandError where something stands against it; PublishError where a folder cannot be laid out.
 */
export async function runPublish(options: PublishOptions): Promise<void> {
  const { path, chunkSize, url, out, notes } = options
  const stream = options.stream || chunkSize !== undefined
  const lock = options.owner === undefined ? NOBODY_LOCK : addressLock(options.owner)
  const found = await findAt(path, basename(resolve(path)))
  if (stream && found.kind === 'folder')
    throw new CommandError(`${path} is a folder, which goes into one transaction; a stream is made of a file`)
  const server = await LocalServer.at(url)
  if (stream) {
    const size = chunkSize ?? DEFAULT_STREAM_CHUNK_SIZE
    const txid = await publishStream({ server, found, lock, chunkSize: size })
    out.write(`${server.url}${profile.gatewayPrefixes[0]}/stream/${formatOutpoint({ txid, vout: 0 })}\n`)
    return
  }
  const { outputs, root, suffix, note } = await layOutWhole(found, lock)
  const transaction = fundedTransaction(outputs)
  await server.submit(transaction, { outputs: outputs.length, called: found.path })
  const { txid } = transaction
  out.write(`${server.url}/content/${formatOutpoint({ txid, vout: root })}${suffix}\n`)
  if (note !== undefined) notes.write(`minetree: ${note}\n`)
}

interface LaidOut {
  outputs: PublishOutput[]
  root: number
  /** What follows the outpoint in the URL: the slash of a directory. */
  suffix: string
  note?: string
}

async function layOutWhole(found: Found, lock: Uint8Array): Promise<LaidOut> {
  const entry = await readWhole(found)
  if (!('entries' in entry)) return { outputs: [layOutFile({ ...entry, lock })], root: 0, suffix: '' }
  const { outputs, root, hasIndex } = layOutFolder({ entries: entry.entries, lock, profile })
  const laidOut = { outputs, root, suffix: '/' }
  if (hasIndex) return laidOut
  return { ...laidOut, note: 'the folder has no index.html: this URL needs the path of a file behind it' }
}

/** Submits a stream chunk by chunk, one in memory at a time; gives the txid of the first. */
async function publishStream(options: {
  server: LocalServer
  found: Found
  lock: Uint8Array
  chunkSize: number
}): Promise<string> {
  const { server, found, lock, chunkSize } = options
  const { name, path } = found
  const sha256 = await hashOf(path)
  const published = createHash('sha256')
  let first: string | undefined
  let last: MadeUpTransaction | undefined
  let index = 0
  for await (const chunk of readChunks(path, chunkSize)) {
    const output = layOutStreamChunk({ name, chunk, index, sha256, lock, profile })
    last = last === undefined ? fundedTransaction([output]) : spendingTransaction(last, output)
    await server.submit(last, { outputs: 1, called: `chunk ${index} of ${path}` })
    published.update(chunk)
    first ??= last.txid
    index++
  }
  if (first === undefined || !equalBytes(published.digest(), sha256))
    throw new CommandError(`${path} changed while it was published: what the server has is not what it is`)
  return first
}
