import { MerklePath } from '@bsv/sdk'
import { encodeBeef } from '../../backend/src/graph/assemble-beef.js'
import { OPEN_LOCK } from '../support/fake-chain.js'
import { type HostileRequest, submitting } from './attack.js'
import { bareTransaction } from './attacks/hostile-chain.js'

const HEIGHT = 800_000

/** Submissions as those make who mean no harm: small inscriptions, not mined yet, each of a coin of its own. */
export class HonestSubmissions {
  private count = 0

  next(): HostileRequest {
    // No fake chain makes up such coins.
    const txid = (++this.count).toString(16).padStart(16, '0').padStart(64, 'a')
    const output = { satoshis: 2, lockingScript: OPEN_LOCK }
    const coin = bareTransaction({ inputs: [{ txid, vout: process.pid }], outputs: [output] })
    const unlockingScript = Uint8Array.of(0x51)
    const inputs = [{ outpoint: { txid: coin.txid, vout: 0 }, unlockingScript }]
    const subject = bareTransaction({ inputs, outputs: [{ ...output, satoshis: 1 }] })
    // Not the first of its block, which is the coinbase.
    const leaves = [
      { offset: 0, hash: 'cb'.repeat(32) },
      { offset: 1, hash: coin.txid, txid: true },
    ]
    const path = new MerklePath(HEIGHT, [leaves])
    const proof = {
      merklePath: Uint8Array.from(path.toBinary()),
      height: HEIGHT,
      root: path.computeRoot(coin.txid),
    }
    return submitting(encodeBeef([{ raw: coin.raw, proof }, { raw: subject.raw }]))
  }
}
