import { z } from 'zod'
import { type Dependency, dependency } from '../../../backend/src/graph/dependencies.js'
import { EMPTY_MAP, type MapState, servedMap } from '../../../backend/src/graph/map-merge.js'
import type { OrdinalStep, OutputRecord } from '../../../backend/src/graph/records.js'
import {
  type ContentReference,
  formatOutpoint,
  parseOutpoint,
} from '../../../backend/src/protocol/outpoint.js'
import type { GraphReads } from '../../../backend/src/read/fact-store.js'
import { outpointOf, outputAt } from '../content/content-root.js'
import type { GatewayParts } from '../http/gateway-parts.js'
import { address, blockHeight, count, map, mapTruncated, outpoint, txid } from '../http/schemas.js'
import { ownerAddress } from '../names/name-record.js'

/** The record of an output, or of an ordinal at a step (`docs/spec/http.md`, Metadata and proofs). Missing fields are unknown or empty. */
export const metadataRecordShape = z
  .strictObject({
    outpoint,
    origin: outpoint.optional().describe('The origin of the ordinal. Only with a sequence.'),
    sequence: count.optional().describe('The step of the ordinal. Only with a sequence.'),
    tip: z
      .boolean()
      .optional()
      .describe('Whether this is the current step of the ordinal. Only with a sequence.'),
    contentOutpoint: outpoint
      .optional()
      .describe('The output that holds the content: the latest inscription at or before the step.'),
    contentType: z.string().optional().describe('The content type, as inscribed.'),
    contentLength: count.optional().describe('The length of the content in bytes.'),
    sha256: txid.optional().describe('The SHA-256 of the content.'),
    map: map.describe('The MAP of the output; with a sequence, merged up to that step.'),
    mapTruncated: mapTruncated.optional(),
    parent: outpoint
      .optional()
      .describe('The parent named by the latest inscription whose transaction spends that parent.'),
    claimedParent: outpoint
      .optional()
      .describe(
        'The parent that the inscription names, if its transaction is not known to spend that parent.',
      ),
    satoshis: count,
    owner: address.optional(),
    spent: z.boolean(),
    height: blockHeight.optional(),
  })
  .meta({
    dependentRequired: {
      origin: ['sequence', 'tip'],
      sequence: ['origin'],
      tip: ['origin'],
      contentOutpoint: ['contentType', 'contentLength', 'sha256'],
    },
  })

export type MetadataRecord = z.output<typeof metadataRecordShape>

export type MetadataOptions = Pick<GatewayParts, 'store' | 'network' | 'maxMapBytes'>

/**
 * The record of a reference; undefined if the store has no such output, or the ordinal no such step. Needs several reads of one
 * snapshot.
 */
export function metadataRecord(
  options: MetadataOptions,
  reference: ContentReference,
): MetadataRecord | undefined {
  const { store } = options
  const { pointer, sequence } = reference
  if (sequence === undefined) {
    const output = outputAt(store, pointer)
    return output && recordOf(options, { output, content: output })
  }
  const outpoint = outpointOf(store, reference)
  const step = outpoint && store.ordinals.at(outpoint, sequence)
  return step && recordOf(options, step)
}

function recordOf(
  { store, network, maxMapBytes }: MetadataOptions,
  found: { output: OutputRecord; content: OutputRecord } | OrdinalStep,
): MetadataRecord {
  const { outpoint, satoshis, owner } = found.output
  const isStep = 'origin' in found
  const parent = isStep ? found.parent : found.output.parent
  // If the limit is 0, only the existence of MAP matters.
  const map = isStep
    ? store.metadata.merged(found, maxMapBytes === 0 ? 0 : undefined)
    : ownMap(store, found.output, maxMapBytes)
  const height = store.transactions.heightOf(outpoint.txid)
  const { content, claimedParent } = found.content
  return {
    outpoint: formatOutpoint(outpoint),
    ...(isStep && { origin: formatOutpoint(found.origin), sequence: found.sequence, tip: found.tip }),
    ...(content && {
      contentOutpoint: formatOutpoint(found.content.outpoint),
      contentType: content.contentType,
      contentLength: content.length,
      sha256: content.sha256,
    }),
    ...(map === undefined ? { map: {}, mapTruncated: true } : servedMap(map, maxMapBytes)),
    ...(parent && { parent: formatOutpoint(parent) }),
    ...(claimedParent && { claimedParent: formatOutpoint(claimedParent) }),
    satoshis,
    ...(owner !== undefined && { owner: ownerAddress(owner, network) }),
    spent: store.transactions.spenderOf(outpoint) !== undefined,
    ...(height !== undefined && { height }),
  }
}

export function dependenciesOfRecord({ outpoint, origin, ...named }: MetadataRecord): Dependency[] {
  const place = parseOutpoint(outpoint)
  const ofOutput = [dependency.spend(place), dependency.proof(place.txid)]
  const isFixed = origin === undefined && named.parent === undefined && named.claimedParent === undefined
  return isFixed ? ofOutput : [...ofOutput, dependency.lineages]
}

/** Undefined if there is MAP but the limit is 0. */
function ownMap(
  store: GraphReads,
  { outpoint, mapLength }: OutputRecord,
  maxMapBytes: number,
): MapState | undefined {
  if (mapLength === undefined) return EMPTY_MAP
  return maxMapBytes === 0 ? undefined : store.metadata.own(outpoint)
}
