import { toHex, utf8 } from '../../../backend/src/protocol/bytes.js'
import { type LyingView, ofHeaders } from './chain-services.js'
import { json, NOT_FOUND, ok, type Reply } from './fake-service.js'

const BAD_REQUEST: Reply = { status: 400, body: utf8('Bad Request') }

/**
 * Answers as WhatsOnChain does. Spends are in two indexes, of the blocks and of the mempool; each answers 400 for an output that
 * it does not know, and 404 for one that it knows no spender of.
 */
export function answerAsWhatsOnChain(path: string, view: LyingView, body: string): Reply {
  const parts = new URL(path, 'http://whatsonchain').pathname.split('/').slice(1)
  if (parts.slice(0, 3).join('/') !== 'v1/bsv/main') return NOT_FOUND
  const [group, id = '', ...rest] = parts.slice(3)
  if (group === 'utxos' && id === 'spent') return spends(body, view)
  if (group === 'txs' && id === 'status') return statuses(body, view)
  if (group === 'chain' || group === 'block') return ofHeaders(path, view)
  if (group !== 'tx' || !/^[0-9a-f]{64}$/.test(id)) return NOT_FOUND
  const record = view.transaction(id)
  const route = rest.join('/')
  if (route === 'hex') return record === undefined ? NOT_FOUND : ok(utf8(toHex(record.raw)))
  if (route === 'proof/bump')
    return record?.proof === undefined ? NOT_FOUND : ok(utf8(toHex(record.proof.merklePath)))
  const [, vout, index] = /^(\d+)\/(?:(confirmed|unconfirmed)\/)?spent$/.exec(route) ?? []
  if (vout === undefined) return NOT_FOUND
  return spend({ txid: id, vout: Number(vout) }, { index, view })
}

function spend(
  outpoint: { txid: string; vout: number },
  { index, view }: { index: string | undefined; view: LyingView },
): Reply {
  const record = view.transaction(outpoint.txid)
  const txid = view.spenderOf(outpoint)
  const isMined = txid !== undefined && view.transaction(txid)?.proof !== undefined
  const status = isMined ? 'confirmed' : 'unconfirmed'
  if (txid !== undefined && (index ?? status) === status) return json({ txid, vin: 0, status })
  // The mempool knows no outputs of mined transactions, and the blocks none of others.
  const isThere = index === undefined || (index === 'confirmed') === (record?.proof !== undefined)
  return record !== undefined && isThere ? NOT_FOUND : BAD_REQUEST
}

/** It takes no more outputs at once. */
const MAX_UTXOS = 20

function spends(body: string, view: LyingView): Reply {
  const { utxos } = JSON.parse(body) as { utxos: { txid: string; vout: number }[] }
  if (utxos.length > MAX_UTXOS) return BAD_REQUEST
  const found = utxos.map((utxo) => {
    const { txid } = utxo
    const spender = view.spenderOf(utxo)
    const status = spender && view.transaction(spender)?.proof ? 'confirmed' : 'unconfirmed'
    if (spender !== undefined) return { utxo, spentIn: { txid: spender, vin: 0, status }, error: '' }
    const isKnown = view.transaction(txid) !== undefined
    return isKnown ? { utxo, error: '' } : { utxo, spentIn: { txid, status: 'Unknown UTXO' }, error: '' }
  })
  return json(found)
}

function statuses(body: string, view: LyingView): Reply {
  const { txids } = JSON.parse(body) as { txids: string[] }
  if (txids.length > MAX_UTXOS) return BAD_REQUEST
  const tip = view.facts.chain.bestTip.height
  const said = txids.map((txid) => {
    const record = view.transaction(txid)
    if (record === undefined) return { txid, error: 'unknown' }
    if (record.proof === undefined) return { txid }
    const { height } = record.proof
    const { hash, time } = view.facts.blockOf(txid)?.header ?? {}
    return { txid, blockhash: hash, blockheight: height, blocktime: time, confirmations: tip - height + 1 }
  })
  return json(said)
}
