import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { PROFILES } from '../../../backend/src/protocol/profile.js'
import { NOBODY_LOCK } from '../../mining/made-up-mint.js'
import { layOutStream } from '../../publish/file.js'
import { fundedTransaction, type MadeUpTransaction, spendingTransaction } from '../made-up-money.js'
import { type Network, nowhereFor, submitOnce } from './network.js'
import { melody } from './sound.js'

/** Bytes: small, so that a few seconds of sound make several chunks. */
const CHUNK = 64 * 1024

/**
 * Publishes the melody as a stream, chunk by chunk, as far as it is not there yet.
 *
 * @returns The outpoint of the first chunk, as text.
 * @throws CommandError
 */
export async function publishMelody(network: Network): Promise<string> {
  const chunks = layOutStream({
    name: 'melody.wav',
    bytes: melody(),
    lock: NOBODY_LOCK,
    profile: PROFILES.local,
    streamChunkSize: CHUNK,
  })
  const made: MadeUpTransaction[] = []
  for (const [index, chunk] of chunks.entries()) {
    const before = made.at(-1)
    const transaction =
      before === undefined
        ? fundedTransaction([chunk], nowhereFor(network, 'melody'))
        : spendingTransaction(before, chunk)
    await submitOnce(network, transaction, { outputs: 1, called: `chunk ${index} of the melody` })
    made.push(transaction)
  }
  network.progress.say(`published a melody in ${made.length} chunks`)
  return formatOutpoint({ txid: made[0]?.txid ?? '', vout: 0 })
}
