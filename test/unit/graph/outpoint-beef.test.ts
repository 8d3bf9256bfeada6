import { Beef, MerklePath } from '@bsv/sdk'
import { readBeef } from '../../../backend/src/graph/read-beef.js'
import type { TransactionRecord } from '../../../backend/src/graph/records.js'
import { type ListedTransaction, outpointBeef } from '../../../backend/src/graph/write-beef.js'
import { joinBytes, toHex } from '../../../backend/src/protocol/bytes.js'
import { proofIn, recordOf } from '../../support/protocol/block.js'
import { FakeChain, type FakeTransaction, p2pkh } from '../../support/protocol/fake-chain.js'

const chain = new FakeChain()
const make = (): FakeTransaction =>
  chain.spend({ inputs: [], outputs: [{ satoshis: 1, lockingScript: p2pkh(1) }] })

/** The path of a block that holds all of these, in order; their number is a power of two. */
function blockOf(transactions: FakeTransaction[], height: number): MerklePath {
  const leaves = transactions.map(({ txid }, offset) => ({ offset, hash: txid, txid: true }))
  const levels = Math.log2(transactions.length)
  return new MerklePath(height, [leaves, ...Array.from({ length: levels - 1 }, () => [])])
}

async function laidOut(records: TransactionRecord[]) {
  const held = new Map(records.map((record) => [record.txid, record]))
  const transactions: ListedTransaction[] = records.map(({ txid, raw, proof }) => ({
    txid,
    length: raw.length,
    ...(proof && { proof }),
  }))
  const subject = { txid: records.at(-1)?.txid ?? '', vout: 258 }
  const store = {
    raw(txid: string) {
      const bytes = held.get(txid)?.raw
      return bytes && { txid, length: bytes.length, chunks: () => [{ at: 0, bytes }] }
    },
  }
  return { held, beef: await outpointBeef({ subject, transactions, store }) }
}

async function bytesOf(records: TransactionRecord[]): Promise<Uint8Array> {
  const { beef } = await laidOut(records)
  const chunks: Uint8Array[] = []
  for (const chunk of beef.bytes()) chunks.push(chunk)
  const bytes = joinBytes(chunks)
  expect(bytes).toHaveLength(beef.length)
  return bytes
}

test('starts with the prefix and the subject of BRC-158, and goes on with the transactions in their order', async () => {
  const [one, two, three] = [make(), make(), make()]
  const bytes = await bytesOf([recordOf(one, 5), recordOf(two), recordOf(three, 6)])
  const internal = Buffer.from(three.txid, 'hex').reverse().toString('hex')
  expect(toHex(bytes.subarray(0, 40))).toBe(`16a7beef${internal}02010000`)
  const beef = readBeef(bytes.slice(40))
  expect(beef.txids).toEqual([one.txid, two.txid, three.txid])
  expect(beef.txids.map((txid) => beef.proof(txid)?.height)).toEqual([5, undefined, 6])
})

test.each([
  [4, 1],
  [16, 1],
  [64, 4],
])('of %d transactions of one block, the paths become %d', async (count, expected) => {
  const transactions = Array.from({ length: count }, make)
  const block = blockOf(transactions, 7)
  const other = make()
  const records = transactions.map((transaction) => ({
    ...recordOf(transaction),
    proof: proofIn(block, transaction),
  }))
  const bytes = await bytesOf([...records, recordOf(other, 8)])
  const { bumps, txs } = Beef.fromBinary(Array.from(bytes.subarray(40)))
  expect(bumps).toHaveLength(expected + 1)
  for (const { bumpIndex, txid } of txs.slice(0, -1))
    expect(bumps[bumpIndex ?? -1]?.computeRoot(txid)).toBe(block.computeRoot())
  expect(bumps[txs.at(-1)?.bumpIndex ?? -1]?.computeRoot(other.txid)).toBe(other.txid)
})

test('paths of one height that lead to two roots stay two', async () => {
  const [one, two] = [make(), make()]
  const bytes = await bytesOf([recordOf(one, 9), recordOf(two, 9)])
  const { bumps, txs } = Beef.fromBinary(Array.from(bytes.subarray(40)))
  expect(txs.map(({ txid, bumpIndex }) => bumps[bumpIndex ?? -1]?.computeRoot(txid))).toEqual([
    one.txid,
    two.txid,
  ])
})

test.each<[string, (record: TransactionRecord) => TransactionRecord | undefined]>([
  ['is gone', () => undefined],
  ['is another', (record) => ({ ...record, raw: record.raw.subarray(1) })],
])('a transaction that %s by then is an error, behind what came before it', async (_, change) => {
  const [one, two] = [recordOf(make(), 1), recordOf(make(), 2)]
  const { held, beef } = await laidOut([one, two])
  const changed = change(two)
  held.delete(two.txid)
  if (changed !== undefined) held.set(two.txid, changed)
  const given: Uint8Array[] = []
  const read = async (): Promise<void> => {
    for (const chunk of beef.bytes()) given.push(chunk)
  }
  await expect(read()).rejects.toThrow(two.txid)
  expect(given).toContain(one.raw)
})
