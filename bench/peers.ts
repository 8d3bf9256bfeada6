import { type ChainTracker, MerklePath, P2PKH, PrivateKey, Transaction } from '@bsv/sdk'
import { readBeef } from '../backend/src/graph/read-beef.js'
import { Verification } from '../backend/src/host/verification.js'

const LENGTHS = [25, 100]
const HEIGHT = 800_000

/**
 * The processor time of a host for a chain of unproven transactions from a peer: an engine passes on each of them with all before
 * it. Beside it, that of the SDK, which verifies the last of them once and so runs the scripts of all.
 */
export async function* peers(): AsyncGenerator<string> {
  await costOf(await unprovenChain(LENGTHS[0] ?? 1), async () => true)
  for (const length of LENGTHS) {
    const beefs = await unprovenChain(length)
    const last = beefs.at(-1) ?? []
    const once = await cpuOf(async () => {
      await Transaction.fromBEEF(last).verify(trackerOf(async () => true))
    })
    for (const isThere of [true, false]) {
      const { cpu, questions } = await costOf(beefs, async () => isThere)
      const proof = isThere ? 'true' : 'made up'
      yield `${length} unproven transactions of ${last.length} bytes in all on a proof that is ${proof}: ${cpu.toFixed(0)} ms of CPU, ratio ${(cpu / once).toFixed(2)} (wanted: at most 2); ${questions} questions to the chain tracker`
    }
  }
}

function trackerOf(isValidRootForHeight: () => Promise<boolean>): ChainTracker {
  return { isValidRootForHeight, currentHeight: async () => HEIGHT }
}

async function costOf(
  beefs: readonly number[][],
  isThere: () => Promise<boolean>,
): Promise<{ cpu: number; questions: number }> {
  let questions = 0
  const tracker = trackerOf(() => {
    questions++
    return isThere()
  })
  const verification = new Verification()
  const cpu = await cpuOf(async () => {
    for (const beef of beefs) await verification.of(readBeef(beef), tracker)
  })
  return { cpu, questions }
}

async function cpuOf(work: () => Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/** The BEEFs of transactions that each spend the one before; the first spends a proven one. */
async function unprovenChain(length: number): Promise<number[][]> {
  const key = PrivateKey.fromRandom()
  const lockingScript = new P2PKH().lock(key.toPublicKey().toHash())
  const outputs = [{ satoshis: 1, lockingScript }]
  let before = new Transaction(1, [], outputs)
  before.merklePath = new MerklePath(HEIGHT, [[{ offset: 0, hash: before.id('hex'), txid: true }]])
  const beefs: number[][] = []
  while (beefs.length < length) {
    const unlockingScriptTemplate = new P2PKH().unlock(key)
    const input = {
      ...{ sourceTransaction: before, sourceOutputIndex: 0 },
      ...{ unlockingScriptTemplate, sequence: 0xffffffff },
    }
    before = new Transaction(1, [input], outputs)
    await before.sign()
    beefs.push(before.toBEEF())
  }
  return beefs
}
