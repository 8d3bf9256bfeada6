import { type Inscription, readInscription } from '../protocol/inscription.js'
import type { TransactionOutput, TransactionView } from '../protocol/transaction.js'
import type { Flow } from './flow.js'
import { encodeMap } from './map-coder.js'
import { sha256 as sha256Of } from './native-hash.js'
import { type GraphRecords, graphRecords } from './records.js'

const inscriptions = new WeakMap<TransactionOutput, Inscription>()

/** What an output's script inscribes; of one that is admitted, the script is walked once, whoever asks. */
export function inscriptionOf(output: TransactionOutput): Inscription {
  const known = inscriptions.get(output)
  if (known !== undefined) return known
  const inscription = readInscription(output.lockingScript)
  const { content, map } = inscription
  // What holds nothing is not kept: a transaction may have millions of such outputs.
  if (content !== undefined || map.length > 0) inscriptions.set(output, inscription)
  return inscription
}

/** Whether `tm_ordinals` admits an output for what it holds: content, or MAP in one satoshi. */
export function holdsOrdinal(output: TransactionOutput): boolean {
  const { content, map } = inscriptionOf(output)
  return content !== undefined || (output.satoshis === 1 && map.length > 0)
}

/**
 * What the admission of an output by `tm_ordinals` says of it: its value, its owner, its content by hash, its MAP, its
 * parent, and the 1-sat coin that it received, where the flow knows.
 */
export function ordinalsRecords(options: {
  transaction: TransactionView
  vout: number
  flow: Flow
}): GraphRecords {
  const { transaction, vout, flow } = options
  const { txid, inputs, outputs } = transaction
  const outpoint = { txid, vout }
  const output = outputs[vout]
  if (output === undefined) throw new RangeError(`${txid} has no output ${vout}`)
  const { content, map, parent, owner } = inscriptionOf(output)
  const mapBytes = map.length === 0 ? undefined : encodeMap(map)
  const sha256 = content && sha256Of(content.body).toString('hex')
  const predecessor = flow.predecessors[vout]
  const received = predecessor?.kind === 'input' ? inputs[predecessor.input] : undefined
  return graphRecords({
    outputs: [
      {
        outpoint,
        satoshis: output.satoshis,
        ...(owner !== undefined && { owner }),
        ...(parent && { parent }),
        ...(mapBytes && { mapLength: mapBytes.length }),
        ...(content &&
          sha256 && { content: { sha256, contentType: content.contentType, length: content.body.length } }),
        ...(received && { previous: { txid: received.txid, vout: received.vout } }),
        ...(predecessor?.kind === 'unknown' && { unsettled: true }),
      },
    ],
    contents: content && sha256 ? [{ sha256, bytes: content.body }] : [],
    maps: mapBytes ? [{ outpoint, bytes: mapBytes }] : [],
  })
}
