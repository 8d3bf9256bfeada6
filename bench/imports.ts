import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import Libsql from 'libsql'
import { sha256 } from '../backend/src/graph/native-hash.js'
import { encodeBeef } from '../backend/src/graph/write-beef.js'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { runImport } from '../src/cli/import.js'
import { CommandOutput } from '../src/cli/output.js'
import { openNode, WRITER_THREAD } from '../src/server/node.js'
import { FakeChain, inscriptionScript, OPEN_LOCK } from '../test/support/protocol/fake-chain.js'
import { HeaderChain } from '../test/support/server/header-chain.js'
import { HostTracker } from '../test/support/server/host-tracker.js'
import { configFor, SILENT, type Spent, spent, withFolder } from './support.js'

/** How many inscriptions are imported, after as many to warm up. */
const COUNT = 4000
const A_BLOCK = 200
const BODY = 4096
/** How many rows a bare statement inserts per commit: about as many as inscriptions share a write. */
const A_COMMIT = 50

const NOWHERE = new Writable({ write: (_chunk, _encoding, done) => done() })
const QUIET = new CommandOutput({ stdout: NOWHERE, stderr: NOWHERE, json: false, env: {} })

/**
 * Proven inscriptions of 4 KiB, each in its own BEEF, through `import`; compared with bare SQLite that hashes and inserts the
 * same bytes, with about as many commits.
 */
export async function* imports(): AsyncGenerator<string> {
  const chain = new FakeChain()
  const headers = new HeaderChain(0)
  const [warming, beefs] = [inscribed(chain, headers), inscribed(chain, headers)]
  const givenTracker = new HostTracker(headers)
  const ways = {
    'bare SQLite': insertBare,
    '`import`': async (parts: Uint8Array[][], folder: string) => {
      const config = { ...configFor(chain, folder, { CHAIN_TRACKER: 'headers' }), givenTracker }
      return await importAll(parts, { folder, config })
    },
  }
  let bare: number | undefined
  for (const [name, run] of Object.entries(ways)) {
    const { cpu, wall } = await withFolder((folder) => run([warming, beefs], folder))
    bare ??= cpu
    yield `${name}: ${(1000 * (COUNT / wall)).toFixed(0)} a second; ${(cpu / COUNT).toFixed(2)} ms of CPU each, ${(cpu / bare).toFixed(1)} times bare SQLite`
  }
  yield '(wanted: `import` at least 1000 a second on two cores)'
}

/** BEEFs of inscriptions, mined in blocks with real merkle paths. */
function inscribed(chain: FakeChain, headers: HeaderChain): Uint8Array[] {
  const beefs: Uint8Array[] = []
  while (beefs.length < COUNT) {
    const coins = Array.from({ length: A_BLOCK }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
    const purse = chain.spend({ inputs: [], outputs: coins })
    const transactions = coins.map((_, vout) => {
      const lockingScript = inscriptionScript({ contentType: 'image/png', body: randomBytes(BODY) })
      const inputs = [{ transaction: purse, vout }]
      return chain.spend({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    })
    const block = headers.mine(transactions)
    for (const { txid, raw } of transactions) beefs.push(encodeBeef([{ raw, proof: block.proof(txid) }]))
  }
  return beefs
}

/** Imports BEEFs from files, one part after another, into an open node. @returns The time of the last part. */
async function importAll(
  parts: Uint8Array[][],
  { folder, config }: { folder: string; config: ReturnType<typeof configFor> },
): Promise<Spent> {
  const node = await openNode({ config, logger: SILENT, writerThread: WRITER_THREAD })
  const open = async () => ({ ...node, close: async () => {} })
  const { signal } = new AbortController()
  const file = join(folder, 'beefs.hex')
  const took = await lastOf(parts, async (beefs) => {
    await writeFile(file, beefs.map((beef) => Buffer.from(beef).toString('hex')).join('\n'))
    return await spent(() => runImport({ open, paths: [file], trust: false, output: QUIET, signal }))
  })
  const { length } = node.graph.admissions.unspentOfTopic({ topic: TOPICS.ordinals, since: 0 })
  if (length !== parts.length * COUNT) throw new Error(`${length} inscriptions were admitted`)
  await node.close()
  return took
}

/** Hashes each BEEF, and inserts it with its hash. @returns The time of the last part. */
async function insertBare(parts: Uint8Array[][], folder: string): Promise<Spent> {
  const database = new Libsql(join(folder, 'bare.sqlite'))
  database.exec(
    'pragma journal_mode = wal; pragma synchronous = full; create table bare (hash blob primary key, bytes blob)',
  )
  const insert = database.prepare('insert into bare (hash, bytes) values (?, ?)')
  const took = await lastOf(parts, (beefs) =>
    spent(() => {
      for (let at = 0; at < beefs.length; at += A_COMMIT) {
        database.exec('begin')
        for (const beef of beefs.slice(at, at + A_COMMIT)) insert.run([sha256(sha256(beef)), beef])
        database.exec('commit')
      }
    }),
  )
  database.close()
  return took
}

async function lastOf(parts: Uint8Array[][], run: (part: Uint8Array[]) => Promise<Spent>): Promise<Spent> {
  const all: Spent[] = []
  for (const part of parts) all.push(await run(part))
  return all.at(-1) as Spent
}
