import { LockingScript, P2PKH, Transaction, UnlockingScript } from '@bsv/sdk'
import { ascii, concatBytes } from '../../../backend/src/protocol/bytes.js'
import { decodeMineNode } from '../../../backend/src/protocol/mine-node.js'
import { meetsDifficulty, ownerCommitment, proofOfWork } from '../../../backend/src/protocol/mint.js'
import { verifiedLiveNode } from '../../../src/mining/live-node.js'
import { HttpMineIndex } from '../../../src/mining/mine-index.js'
import { serverDeployment } from '../../../src/mining/server-deployment.js'
import { p2pkhLockOf, payWithKey } from '../../../src/payments/key.js'
import { payForMint } from '../../../src/payments/mints.js'
import { provenAlone } from '../../support/protocol/transactions.js'
import { multisigLock } from './expensive-scripts.js'
import type { ForgedNode } from './hostile-nodes.js'
import { type HonestTree, PAYING_KEY } from './stage.js'

/**
 * A true node of a tree, minted by a transaction that is in no block and is paid for by one whose script takes long.
 *
 * @param bytes The length of that script.
 */
export async function expensiveChild(
  { url }: HonestTree,
  bytes: number,
): Promise<ForgedNode & { domain: string }> {
  const { deployment } = await serverDeployment(url)
  const index = new HttpMineIndex({ url })
  const node = await verifiedLiveNode({ name: 'a', deployment, index, chainTracker: 'scripts only' })
  if (node === undefined) throw new Error('the name is taken')
  const { lockingScript, transaction: source } = node
  const { seed } = decodeMineNode(lockingScript)
  const ownerLock = p2pkhLockOf(PAYING_KEY.toPublicKey())
  const commitment = ownerCommitment({ domain: '', ownerLock, deployment })
  const plan = {
    node: { outpoint: node.outpoint, satoshis: 1, lockingScript },
    deployment,
    character: 'a',
    nonce: nonceFor({ seed, commitment, difficulty: deployment.difficulty }),
    ownerLock,
  }
  const payer = payWithKey({ key: PAYING_KEY, coins: [{ transaction: expensiveCoin(bytes), vout: 0 }] })
  const signed = await payForMint({ plan, source }, payer.pay)
  const { transaction } = signed
  return {
    domain: 'a',
    outpoint: { txid: transaction.id('hex'), vout: 1 },
    beef: Uint8Array.from(transaction.toBEEF(true)),
  }
}

function nonceFor(search: { seed: Uint8Array; commitment: Uint8Array; difficulty: number }): Uint8Array {
  const counter = new Uint8Array(4)
  for (let tried = 0; ; tried++) {
    new DataView(counter.buffer).setUint32(0, tried)
    const nonce = concatBytes(search.commitment, counter)
    if (meetsDifficulty(proofOfWork({ seed: search.seed, character: 'a', nonce }), search.difficulty))
      return nonce
  }
}

/** A coin of the key, in a transaction that is in no block and spends a coin with an expensive lock. */
function expensiveCoin(bytes: number): Transaction {
  const locked = new Transaction()
  locked.addInput({
    sourceTXID: 'ee'.repeat(32),
    sourceOutputIndex: 0,
    unlockingScript: new UnlockingScript(),
  })
  locked.addOutput({
    satoshis: 2_000_000,
    lockingScript: LockingScript.fromBinary(Array.from(multisigLock(bytes))),
  })
  const coin = new Transaction()
  coin.addInput({
    sourceTransaction: provenAlone(locked),
    sourceOutputIndex: 0,
    unlockingScript: UnlockingScript.fromBinary(Array.from(ascii('\x51'))),
  })
  coin.addOutput({ satoshis: 1_900_000, lockingScript: new P2PKH().lock(PAYING_KEY.toAddress()) })
  return coin
}
