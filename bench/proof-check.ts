import { Beef, type ChainTracker, Transaction } from '@bsv/sdk'
import { portableSha256 } from '../src/client/portable-sha256.js'
import { verifyNameProof } from '../src/client/verify-name.js'
import { at, FakeHeaders, proofOf } from '../test/support/client/name-proofs.js'
import { FakeChain, type FakeTransaction, OPEN_LOCK } from '../test/support/protocol/fake-chain.js'
import { LIVE_CODE_SIZE, median, timed } from './support.js'

const SPENDS = 200
const TURNS = 15

/**
 * What it costs the client to check a proof of 200 spends with nodes of the live covenant's size, against
 * `Transaction.verify` of the SDK over the same transactions, from the same bytes; by turns. In blocks, the SDK verifies
 * each of them; in none, one verification goes through all their scripts. Beside that, what the client checks and the SDK
 * does not: that each is a mint, and the next.
 */
export async function* proofCheck(): AsyncGenerator<string> {
  const { chain, transactions, mints } = line()
  const headers = new FakeHeaders(transactions)
  const chainTracker: ChainTracker = {
    isValidRootForHeight: headers.isValidRootForHeight.bind(headers),
    currentHeight: async () => 0,
  }
  const name = 'n'.repeat(SPENDS)
  const check = { name, deployment: chain.deployment, chainTracker }
  for (const [what, unproven, verify] of [
    ['in blocks', [], verifyEach],
    ['in no block', mints, verifyLast],
  ] as const) {
    const proof = proofOf(transactions, { unproven })
    const beef = proof.subarray(40)
    const ours: number[] = []
    const portable: number[] = []
    const theirs: number[] = []
    for (let turn = 0; turn < TURNS; turn++) {
      ours.push(await timed(() => verifyNameProof({ ...check, proof })))
      theirs.push(await timed(() => verify(beef, { chainTracker })))
      portable.push(await timed(() => verifyNameProof({ ...check, proof, hash: portableHash })))
    }
    const [own, sdk, slow] = [ours, theirs, portable].map(median) as [number, number, number]
    yield `${SPENDS} spends ${what} (${(proof.length / 1e6).toFixed(1)} MB): the client ${own.toFixed(0)} ms, Transaction.verify ${sdk.toFixed(0)} ms (medians of ${TURNS})`
    yield `ratio ${(own / sdk).toFixed(2)} (wanted: at most 1.3); with our own SHA-256, as in a browser, ${(slow / sdk).toFixed(2)} (wanted: at most 1.3)`
  }
}

const portableHash = (bytes: Uint8Array): Uint8Array => portableSha256(portableSha256(bytes))

/** A line of mints, each from the node that the one before left for it, paid for by coins that any push opens. */
function line(): { chain: FakeChain; transactions: FakeTransaction[]; mints: FakeTransaction[] } {
  const chain = new FakeChain({ codeSize: LIVE_CODE_SIZE })
  const outputs = Array.from({ length: SPENDS }, () => ({ satoshis: 1000, lockingScript: OPEN_LOCK }))
  const purse = chain.spend({ inputs: [], outputs })
  const mints = outputs.map((_, vout) => chain.mint('n'.repeat(vout + 1), { funding: [at(purse, vout)] }))
  return { chain, transactions: [chain.genesis, purse, ...mints], mints }
}

interface Verification {
  chainTracker: ChainTracker
}

/** Reads the BEEF once, and verifies each transaction by its merkle path. */
async function verifyEach(beef: Uint8Array, { chainTracker }: Verification): Promise<void> {
  const { txs, bumps } = Beef.fromBinary(beef)
  for (const { tx, bumpIndex } of txs) {
    if (tx !== undefined && bumpIndex !== undefined) tx.merklePath = bumps[bumpIndex]
    if (!(await tx?.verify(chainTracker))) throw new Error('the SDK refuses a transaction of the line')
  }
}

/** Reads the BEEF and verifies the last transaction, and with it all that it spends. */
async function verifyLast(beef: Uint8Array, { chainTracker }: Verification): Promise<void> {
  const transaction = Transaction.fromBEEF(beef)
  if (!(await transaction.verify(chainTracker))) throw new Error('the SDK refuses the line')
}
