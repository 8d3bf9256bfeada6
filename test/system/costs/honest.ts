import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { inscriptionScript, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { bareTransaction, proofOf } from '../../support/protocol/transactions.js'
import { type HostileRequest, submitting } from './attack.js'
import { confirmed } from './slow-tracker.js'

/** Submissions as those make who mean no harm: small inscriptions, not mined yet, each of a coin of its own. */
export class HonestSubmissions {
  private count = 0

  next(): HostileRequest {
    // No fake chain makes up such coins.
    const txid = (++this.count).toString(16).padStart(16, '0').padStart(64, 'a')
    const coin = bareTransaction({
      inputs: [{ txid, vout: process.pid }],
      outputs: [{ satoshis: 2, lockingScript: OPEN_LOCK }],
      height: 800_000,
    })
    const inputs = [{ outpoint: { txid: coin.txid, vout: 0 }, unlockingScript: Uint8Array.of(0x51) }]
    const lockingScript = inscriptionScript({
      lock: OPEN_LOCK,
      contentType: 'text/plain',
      body: utf8(`a note, the ${this.count}.`),
    })
    const subject = bareTransaction({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    return submitting(encodeBeef([{ raw: coin.raw, proof: confirmed(proofOf(coin)) }, { raw: subject.raw }]))
  }
}
