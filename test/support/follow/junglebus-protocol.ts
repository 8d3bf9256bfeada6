import { fromHex } from '../../../backend/src/protocol/bytes.js'
import { parseOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { type LyingView, ofHeaders, type Placed } from './chain-services.js'
import { type ChainView, json, NOT_FOUND, ok, type Reply } from './fake-service.js'

/** Answers about transactions and spends as JungleBus does. */
export function answerOfTransactions(path: string, view: ChainView): Reply | undefined {
  const [, kind, id = ''] =
    /^\/v1\/(transaction\/get|transaction\/proof|txo\/spend)\/([^/]+)/.exec(path) ?? []
  if (kind === undefined) return undefined
  const record = view.transaction(id.slice(0, 64))
  if (record === undefined) return NOT_FOUND
  if (kind === 'transaction/get') return ok(record.raw)
  if (kind === 'transaction/proof')
    return record.proof === undefined ? NOT_FOUND : ok(record.proof.merklePath)
  return ok(fromHex(view.spenderOf(parseOutpoint(id)) ?? ''))
}

/** Answers as JungleBus does, about block headers and subscriptions too (b-open-io/go-junglebus, `transports/http.go`). */
export function answerAsJungleBus(path: string, view: LyingView): Reply {
  const url = new URL(path, 'http://junglebus')
  const parts = url.pathname.split('/').slice(2)
  if (parts[0] === 'block_header') return ofHeaders(path, view)
  if (parts[0] === 'transaction' && parts[1] === 'from_block') {
    const isLite = parts[2] === 'lite'
    return feed({ id: parts[isLite ? 3 : 2] ?? '', isLite, query: url.searchParams, view })
  }
  return answerOfTransactions(path, view) ?? NOT_FOUND
}

interface FeedQuestion {
  id: string
  isLite: boolean
  query: URLSearchParams
  view: LyingView
}

function feed({ id, isLite, query, view }: FeedQuestion): Reply {
  const { facts } = view
  const chooses = facts.subscriptions.get(id)
  if (chooses === undefined) return NOT_FOUND
  const { page, spansBlocks, isEmpty } = view.feed
  const from = Number(query.get('height'))
  const lastIndex = Number(query.get('last_idx') ?? 0)
  const last = spansBlocks ? facts.chain.bestTip.height : from
  const chosen: Placed[] = []
  for (let height = from; height <= last && chosen.length < page; height++) {
    const block = facts.block(height)
    const found = block === undefined ? [] : facts.chosen(block, chooses)
    chosen.push(...found.filter(({ index }) => height > from || index > lastIndex))
  }
  return json(chosen.slice(0, page).map((placed) => feedEntry(placed, { isLite, isEmpty, view })))
}

function feedEntry(
  { txid, raw, block, index }: Placed,
  { isLite, isEmpty, view }: { isLite: boolean; isEmpty: LyingView['feed']['isEmpty']; view: LyingView },
): object {
  const hasBytes = !isLite && !isEmpty({ txid, raw })
  const { hash, height, time } = block.header
  const proof = view.transaction(txid)?.proof
  return {
    ...{ id: txid, block_hash: hash, block_height: height, block_index: index, block_time: time },
    transaction: hasBytes ? base64(raw) : '',
    merkle_proof: hasBytes && proof !== undefined ? base64(proof.merklePath) : '',
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
