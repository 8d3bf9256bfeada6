import {
  BINARY_DIRECTORY,
  ENTRY_FLAGS,
  readBinaryDirectory,
} from '../../backend/src/protocol/binary-directory.js'
import { DirectoryError, directoryEntries, pointerOf } from '../../backend/src/protocol/directory.js'
import { readEnvelope, readInscription } from '../../backend/src/protocol/inscription.js'
import { formatOutpoint, type Outpoint, readPointer } from '../../backend/src/protocol/outpoint.js'
import {
  baseOf,
  checkPatches,
  PATCH_TYPE,
  PatchError,
  patched,
  patchPart,
} from '../../backend/src/protocol/patch.js'
import type { Profile } from '../../backend/src/protocol/profile.js'
import { atOnce } from '../../backend/src/protocol/steps.js'
import { directoryId, fileId, MAX_LEVELS } from './content-tree.js'
import { MAX_DIRECTORY_BYTES } from './folder.js'
import { contentTag } from './inscribe.js'
import type { PublishedContent } from './patch.js'

/** A step of a name: the outpoint of the name, and all outputs of its transaction, whose hash is the txid. */
export interface PublishedStep extends Outpoint {
  outputs: readonly { satoshis: number; lockingScript: Uint8Array }[]
}

export interface Published {
  /** An output that shows the content with this id of a `ContentNode`. */
  inscribed(id: string): Outpoint | undefined
  /** What the name shows at a step, counted from 0; undefined if it only shows that it was mined, or there is no such step. */
  shownAt(sequence: number): PublishedContent | undefined
  /** What the name shows now. */
  shown: PublishedContent | undefined
  /** The number of the last step. */
  sequence: number
  /** Whether two outputs are known to show the same. */
  isSame(one: Outpoint, other: Outpoint): boolean
  /** The entries of a directory with absolute pointers; undefined if it is no readable directory. */
  entriesOf(content: PublishedContent): Map<string, DirectoryPointer> | undefined
  /** The content of an output, if it is one of these transactions. */
  at(outpoint: Outpoint): PublishedContent | undefined
}

export interface DirectoryPointer {
  /** An absolute pointer; as it was written if it points at no output. */
  pointer: string
  outpoint?: Outpoint
  /** The flags of an entry of a binary directory. */
  flags?: number
}

/**
 * Reads what the steps of a name have inscribed. A gateway that shows the name has these transactions, so the next content may
 * point at their outputs. It must not point at others: any other transaction may be missing at a gateway, or never get into a
 * block.
 *
 * @param options.steps From the origin to the tip, each verified by the caller, as `resolveName` does.
 */
export function publishedOn(options: {
  steps: readonly PublishedStep[]
  profile: Pick<Profile, 'directoryContentTypes'>
}): Published {
  const { steps, profile } = options
  const directoryTypes = new Set(profile.directoryContentTypes)
  const byTxid = new Map(steps.map((step) => [step.txid, step]))
  const made = new Map<string, PublishedContent>()
  let left = MAX_MADE_BYTES
  const at = (outpoint: Outpoint): PublishedContent | undefined => {
    const script = byTxid.get(outpoint.txid)?.outputs[outpoint.vout]?.lockingScript
    const content = script && readInscription(script).content
    if (content === undefined) return undefined
    const { txid, vout } = outpoint
    const key = formatOutpoint({ txid, vout })
    const { contentType, body } = content
    const inscribed = { outpoint: { txid, vout }, contentType, body, patches: 0, work: body.length }
    if (contentType !== PATCH_TYPE) return inscribed
    const known = made.get(key)
    if (known !== undefined) return known
    const shown = patchedContent(inscribed, { at, maxBytes: left })
    left -= shown.body.length
    made.set(key, shown)
    return shown
  }
  const entriesOf = (content: PublishedContent) =>
    directoryTypes.has(content.contentType) ? readEntries(content) : undefined
  const ids = identified(steps, { at, entriesOf })
  const places = new Map<string, Outpoint>()
  for (const [id, outpoint] of ids.values()) if (!places.has(id)) places.set(id, outpoint)
  const idOf = (outpoint: Outpoint): string | undefined => ids.get(formatOutpoint(outpoint))?.[0]
  const shownAt = (sequence: number): PublishedContent | undefined => {
    if (steps[sequence] === undefined) return undefined
    // The first step is the mint, whose content is the name itself.
    return steps
      .slice(1, sequence + 1)
      .reduce<PublishedContent | undefined>((last, each) => at(each) ?? last, undefined)
  }
  return {
    inscribed: (id) => places.get(id),
    shownAt,
    shown: shownAt(steps.length - 1),
    sequence: steps.length - 1,
    isSame(one, other) {
      const id = idOf(one)
      return formatOutpoint(one) === formatOutpoint(other) || (id !== undefined && id === idOf(other))
    },
    entriesOf,
    at,
  }
}

/** The result of a patch whose base these steps have inscribed; otherwise the patch itself. */
function patchedContent(
  patch: PublishedContent,
  { at, maxBytes }: { at: Published['at']; maxBytes: number },
): PublishedContent {
  try {
    const base = at(baseOf(patch.body))
    if (base === undefined || base.contentType === PATCH_TYPE) return patch
    checkPatches(base.patches + 1)
    const { outpoint } = patch
    const parts = [patchPart(base.outpoint, base.body), patchPart(outpoint, patch.body)]
    const body = atOnce(patched(parts, maxBytes))
    const work = base.work + patch.body.length + body.length
    return { outpoint, contentType: base.contentType, body, patches: base.patches + 1, work }
  } catch (error) {
    if (error instanceof PatchError) return patch
    throw error
  }
}

/** How many bytes are made of the patches of a name in all: earlier owners may have inscribed anything. */
const MAX_MADE_BYTES = 256 * 1024 * 1024

type Identified = Map<string, readonly [id: string, outpoint: Outpoint]>

/** Identifies what each output shows, by its outpoint. A directory with an unknown target has no id. */
function identified(
  steps: readonly PublishedStep[],
  { at, entriesOf }: Pick<Published, 'at' | 'entriesOf'>,
): Identified {
  const ids: Identified = new Map()
  let directories: { outpoint: Outpoint; entries: Map<string, DirectoryPointer> }[] = []
  for (const { txid, outputs } of steps) {
    for (const [vout, { satoshis, lockingScript }] of outputs.entries()) {
      const { envelope } = readEnvelope(lockingScript)
      const { contentType: inscribed, body: bytes, fields = [] } = envelope ?? {}
      // Other fields of an envelope may change how the body is read.
      if (satoshis !== 1 || inscribed === undefined || bytes === undefined || fields.length > 0) continue
      const outpoint = { txid, vout }
      const content = at(outpoint)
      if (content === undefined) continue
      const { contentType, body } = content
      const entries = entriesOf(content)
      if (entries === undefined)
        ids.set(formatOutpoint(outpoint), [fileId({ contentType, tag: contentTag(body) }), outpoint])
      // Gateways do not follow paths into a longer directory, so nothing may point at it.
      else if (body.length <= MAX_DIRECTORY_BYTES) directories.push({ outpoint, entries })
    }
  }
  // From the innermost directories outwards; cycles never get an id.
  for (let level = 0; level < MAX_LEVELS && directories.length > 0; level++) {
    directories = directories.filter(({ outpoint, entries }) => {
      const known: (readonly [name: string, id: string])[] = []
      for (const [name, { outpoint: target, flags = 0 }] of entries) {
        const id = target && ids.get(formatOutpoint(target))?.[0]
        // The target of a link depends on where its directory is.
        if (id === undefined || (flags & ENTRY_FLAGS.link) !== 0) return true
        known.push([name, id])
      }
      ids.set(formatOutpoint(outpoint), [directoryId(known), outpoint])
      return false
    })
  }
  return ids
}

function readEntries({
  outpoint: { txid },
  contentType,
  body,
}: PublishedContent): Map<string, DirectoryPointer> | undefined {
  try {
    if (contentType !== BINARY_DIRECTORY)
      return new Map(
        [...directoryEntries(body, contentType)].map(([name, entry]) => [
          name,
          absolute(pointerOf(entry), txid),
        ]),
      )
    return new Map(
      [...readBinaryDirectory(body)].map(({ name, flags, target }) => {
        const outpoint = typeof target === 'number' ? { txid, vout: target } : target
        return [name, { pointer: formatOutpoint(outpoint), outpoint, flags }]
      }),
    )
  } catch (error) {
    if (!(error instanceof DirectoryError)) throw error
    return undefined
  }
}

function absolute(text: string, txid: string): DirectoryPointer {
  const pointer = readPointer(text)
  if (pointer === undefined || pointer.kind === 'transaction') return { pointer: text }
  const outpoint = pointer.kind === 'sibling' ? { txid, vout: pointer.vout } : pointer.outpoint
  return { pointer: formatOutpoint(outpoint), outpoint }
}
