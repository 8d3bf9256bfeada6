import { type GraphReader, TIP } from '../../../backend/src/graph/graph-store.js'
import { EMPTY_MAP, type ServedMap, servedMap } from '../../../backend/src/graph/map-merge.js'
import type { OutputRecord } from '../../../backend/src/graph/records.js'
import { lockingScriptOf } from '../../../backend/src/graph/stored-transaction.js'
import type { Network } from '../../../backend/src/protocol/address.js'
import { toHex } from '../../../backend/src/protocol/bytes.js'
import { formatOutpoint } from '../../../backend/src/protocol/outpoint.js'
import { ownerAddress } from './owner-address.js'

export interface NamesOptions {
  store: GraphReader
  /** Whose addresses owners have. */
  network: Network
  /** How many bytes of MAP a record shows. */
  maxMapBytes: number
}

/** All that is known of a name: where it was mined, and what has become of its ordinal. Absent: unknown, or none. */
export interface FullNameRecord extends Partial<ServedMap> {
  name: string
  /** The output in which it was minted. */
  origin: string
  /** Where its ordinal is now. This, `sequence` and `map` are absent where this host does not follow the ordinals of names. */
  tip?: { outpoint: string; owner?: string; script?: string; spent: boolean }
  sequence?: number
  /** Its live node, from which longer names are mined. */
  node?: string
  /** Of the block that holds the mint. */
  height?: number
}

/** Up to how many bytes a tip's script is shown: a lock has some dozens, but a reinscription may stand in it. */
const MAX_SCRIPT_BYTES = 64 * 1024
/** How many pieces of a tip's transaction are read to find it, 4 MiB in all: what stands behind inputs of tens of megabytes is not shown. */
const MAX_SCRIPT_PIECES = 16

/** The record of a name; undefined where it is not claimed. */
export async function nameRecord(options: NamesOptions, name: string): Promise<FullNameRecord | undefined> {
  return await options.store.consistent(() => readRecord(options, name))
}

async function readRecord(
  { store, network, maxMapBytes }: NamesOptions,
  name: string,
): Promise<FullNameRecord | undefined> {
  const origin = await store.names.originOf(name)
  if (origin === undefined) return undefined
  const step = await store.ordinals.at(origin, TIP)
  const node = await store.names.liveNode(name)
  const height = await store.transactions.heightOf(origin.txid)
  return {
    name,
    origin: formatOutpoint(origin),
    ...(step && {
      tip: await tipRecord({ store, network }, step.output),
      sequence: step.sequence,
      ...servedMap((await store.metadata.merged(step.output.outpoint)) ?? EMPTY_MAP, maxMapBytes),
    }),
    ...(node && { node: formatOutpoint(node) }),
    ...(height !== undefined && { height }),
  }
}

async function tipRecord(
  { store, network }: Pick<NamesOptions, 'store' | 'network'>,
  { outpoint, owner }: OutputRecord,
): Promise<FullNameRecord['tip']> {
  const script = await lockingScriptOf(outpoint, store.transactions, {
    longest: MAX_SCRIPT_BYTES,
    pieces: MAX_SCRIPT_PIECES,
  })
  return {
    outpoint: formatOutpoint(outpoint),
    ...(owner !== undefined && { owner: ownerAddress(owner, network) }),
    ...(script && { script: toHex(script) }),
    spent: (await store.transactions.spenderOf(outpoint)) !== undefined,
  }
}
