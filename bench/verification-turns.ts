import { Beef, type ChainTracker, Transaction } from '@bsv/sdk'
import type { Deployment } from '../backend/src/protocol/mint.js'
import { portableSha256 } from '../src/client/portable-sha256.js'
import { verifyNameProof } from '../src/client/verify-name.js'

/** Milliseconds of each turn: of the client, of the client with its own SHA-256, and of `Transaction.verify`. */
export interface VerificationTimes {
  own: number[]
  portable: number[]
  sdk: number[]
}

/** A proof to be verified by turns. Everything in blocks is verified one by one, and otherwise the last transaction with all that it spends. */
export interface VerificationTask {
  name: string
  proof: Uint8Array
  deployment: Deployment
  isInBlocks: boolean
  turns: number
}

/** Verifies a proof by turns. Runs in Node and, bundled, in a page. Headers are a look into a table. */
export async function verifyByTurns(task: VerificationTask): Promise<VerificationTimes> {
  const { turns, isInBlocks, ...check } = task
  const chainTracker: ChainTracker = { isValidRootForHeight: async () => true, currentHeight: async () => 0 }
  const beef = check.proof.subarray(OUTPOINT_PREFIX)
  const verify = isInBlocks ? verifyEach : verifyLast
  const times: VerificationTimes = { own: [], portable: [], sdk: [] }
  for (let turn = 0; turn < turns; turn++) {
    times.own.push(await timeOf(() => verifyNameProof({ ...check, chainTracker })))
    times.sdk.push(await timeOf(() => verify(beef, chainTracker)))
    times.portable.push(await timeOf(() => verifyNameProof({ ...check, chainTracker, hash: portableHash })))
  }
  return times
}

/** What an Outpoint BEEF has before its BEEF (BRC-158). */
const OUTPOINT_PREFIX = 40

const portableHash = (bytes: Uint8Array): Uint8Array => portableSha256(portableSha256(bytes))

async function timeOf(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await run()
  return performance.now() - start
}

/** Reads the BEEF once, and verifies each transaction by its merkle path. */
async function verifyEach(beef: Uint8Array, chainTracker: ChainTracker): Promise<void> {
  const { txs, bumps } = Beef.fromBinary(beef)
  for (const { tx, bumpIndex } of txs) {
    if (tx !== undefined && bumpIndex !== undefined) tx.merklePath = bumps[bumpIndex]
    if (!(await tx?.verify(chainTracker))) throw new Error('the SDK refuses a transaction of the line')
  }
}

/** Reads the BEEF and verifies the last transaction, and with it all that it spends. */
async function verifyLast(beef: Uint8Array, chainTracker: ChainTracker): Promise<void> {
  const transaction = Transaction.fromBEEF(beef)
  if (!(await transaction.verify(chainTracker))) throw new Error('the SDK refuses the line')
}
