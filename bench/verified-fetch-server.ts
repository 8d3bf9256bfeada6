import { randomBytes } from 'node:crypto'
import { MerklePath } from '@bsv/sdk'
import { encodeBeef } from '../backend/src/graph/write-beef.js'
import { utf8 } from '../backend/src/protocol/bytes.js'
import { TOPICS } from '../backend/src/protocol/profile.js'
import { startServer } from '../src/server/server.js'
import { FakeChain, type FakeTransaction, inscriptionScript } from '../test/support/protocol/fake-chain.js'
import { processFolder } from './process-folder.js'
import { configFor, SILENT } from './support.js'

/** What the fetching process is sent. */
export interface VerifiedReady {
  url: string
  genesis: string
  /** A name that shows a directory with `0` and so on. */
  name: string
  /** 4 KiB each, in a transaction of its own. */
  files: string[]
}

/** Those of a block of some thousand transactions. */
const LEVELS = 12
const NAME = 'alice'
const [count = '0'] = process.argv.slice(2)

const chain = new FakeChain()
const server = await startServer({ config: configFor(chain, processFolder()), logger: SILENT })

/** A transaction in a block of its own, as deep as those of the chain. */
function mined({ txid, raw, height }: FakeTransaction) {
  const sibling = () => randomBytes(32).toString('hex')
  const leaves = [
    { offset: 0, hash: txid, txid: true },
    { offset: 1, hash: sibling() },
  ]
  const path = new MerklePath(height, [
    leaves,
    ...Array.from({ length: LEVELS - 1 }, () => [{ offset: 1, hash: sibling() }]),
  ])
  const merklePath = Uint8Array.from(path.toBinary())
  return { txid, raw, proof: { merklePath, height, root: path.computeRoot(txid) } }
}

async function submit(topic: string, ...transactions: FakeTransaction[]): Promise<void> {
  const answer = await fetch(`${server.url}/submit`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream', 'X-Topics': JSON.stringify([topic]) },
    body: encodeBeef(transactions.map(mined)) as Uint8Array<ArrayBuffer>,
  })
  if (!answer.ok) throw new Error(`a submission was refused: ${await answer.text()}`)
}

await submit(TOPICS.names, chain.genesis)
const mints = chain.mintAll(NAME)
for (const mint of mints) await submit(TOPICS.names, mint)
const files: string[] = []
for (let index = 0; index < Number(count); index++) {
  const file = chain.inscribe({ contentType: 'application/octet-stream', body: randomBytes(4096) })
  await submit(TOPICS.ordinals, file)
  files.push(file.outpoint(0))
}
const mint = mints.at(-1) as FakeTransaction
const map = Object.fromEntries(files.map((outpoint, index) => [String(index), outpoint]))
const site = chain.spend({
  inputs: [{ transaction: mint, vout: 2 }],
  outputs: [
    {
      satoshis: 1,
      lockingScript: inscriptionScript({ contentType: 'gw-fs/json', body: utf8(JSON.stringify(map)) }),
    },
  ],
})
await submit(TOPICS.ordinals, mint, site)
process.send?.({
  ...{ url: server.url, name: NAME, files },
  genesis: `${chain.genesis.txid}_0`,
} satisfies VerifiedReady)
