import { beefOf, OPEN_LOCK } from '../support/fake-chain.js'
import { type HostileRequest, submitting } from './attack.js'
import { bareTransaction } from './attacks/hostile-chain.js'

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
    return submitting(beefOf(subject, { proven: false, with: [coin] }))
  }
}
