import { encodeBeef } from '../../../backend/src/graph/write-beef.js'
import { utf8 } from '../../../backend/src/protocol/bytes.js'
import { inscriptionScript, OPEN_LOCK } from '../../support/protocol/fake-chain.js'
import { bareTransaction, proofOf } from '../../support/protocol/transactions.js'
import { type HostileRequest, submitting } from './attack.js'
import { confirmed } from './proven-blocks.js'

/** As many as one server is sent, by far. */
const COINS = 1000

const coins = bareTransaction({
  // No fake chain makes up such a coin.
  inputs: [{ txid: 'a'.repeat(64), vout: 0 }],
  outputs: Array.from({ length: COINS }, () => ({ satoshis: 2, lockingScript: OPEN_LOCK })),
  height: 800_000,
})
const proof = confirmed(proofOf(coins))

/** Submissions to one server as those make who mean no harm: small inscriptions, not mined yet, each of a coin of its own. */
export class HonestSubmissions {
  private count = 0

  next(): HostileRequest {
    const outpoint = { txid: coins.txid, vout: this.count++ }
    const inputs = [{ outpoint, unlockingScript: Uint8Array.of(0x51) }]
    const lockingScript = inscriptionScript({
      lock: OPEN_LOCK,
      contentType: 'text/plain',
      body: utf8(`a note, the ${this.count}.`),
    })
    const subject = bareTransaction({ inputs, outputs: [{ satoshis: 1, lockingScript }] })
    return submitting(encodeBeef([{ raw: coins.raw, proof }, { raw: subject.raw }]))
  }
}
