import type { Db } from 'mongodb'
import { DERIVED, REBUILD_PAGE } from '../rebuild/derived-tables.js'
import { hexOf, inParts, unique } from '../rows/columns.js'
import { answered } from './answered.js'
import { heldChunks } from './blob-chunks.js'
import { type CollectionName, chunkOwner } from './collections.js'
import { collectionIn, type Doc, type Documents } from './documents.js'
import { DURABLE } from './writer-state.js'

export interface Emptying {
  db: Db
  documents: Documents
  /** Called before each step: says that whoever empties lives, and throws where it is somebody else's turn. */
  keep: () => Promise<void>
}

/**
 * Empties the index, a little at a time and past the journal: whoever sees it half empty sees the mark of a rebuild, too,
 * and empties it again, and each step may be done twice.
 *
 * What a transaction spends whose bytes are not here is known from a notice alone, and stays.
 */
export async function emptyIndex(emptying: Emptying): Promise<void> {
  const { db, documents } = emptying
  for (const name of DERIVED) {
    await onEach(emptying, { name, fields: ['_id'] }, async (docs) => {
      await remove(db, name, docs)
    })
  }
  await onEach(emptying, { name: 'graph_silent_spends' }, async (docs) => {
    const puts = docs.map((doc) => ({
      replaceOne: { filter: { _id: doc._id }, replacement: doc, upsert: true },
    }))
    await answered((within) => collectionIn(db, 'graph_spends').bulkWrite(puts, { ...DURABLE, ...within }))
    await remove(db, 'graph_silent_spends', docs)
  })
  await onEach(emptying, { name: 'graph_spends', fields: ['_id', 'spender'] }, async (docs) => {
    const spenders = new Set(docs.map(({ spender }) => hexOf(spender)))
    const held = await heldChunks(documents, [...spenders])
    const known = docs.filter(({ spender }) => held.has(hexOf(spender)))
    await remove(db, 'graph_spends', known)
  })
  await onEach(emptying, { name: 'graph_pieces', fields: ['_id'] }, async (docs) => {
    const kept = await keptOwners(documents, docs)
    const derived = docs.filter(({ _id }) => !kept.has(hexOf(chunkOwner(_id))))
    await remove(db, 'graph_pieces', derived)
  })
  await onEach(emptying, { name: 'graph_transactions', fields: ['_id'] }, async (docs) => {
    // Where each stands is decided anew; when it came is not, nor what proves it.
    const undecided = { $set: { mined: null, silent: false } }
    await answered((within) =>
      collectionIn(db, 'graph_transactions').updateMany(idsOf(docs), undecided, { ...DURABLE, ...within }),
    )
  })
}

/** Does something with all documents of a collection, some at a time in the order of their keys. */
async function onEach(
  { documents, keep }: Emptying,
  { name, fields }: { name: CollectionName; fields?: string[] },
  work: (docs: Doc[]) => Promise<void>,
): Promise<void> {
  for (let last: Doc; ; ) {
    const docs = await documents.all(name, last === undefined ? {} : { _id: { $gt: last._id } }, {
      sort: { _id: 1 },
      limit: REBUILD_PAGE,
      ...(fields && { fields }),
    })
    if (docs.length === 0) return
    await keep()
    await work(docs)
    last = docs.at(-1)
  }
}

async function remove(db: Db, name: CollectionName, docs: Doc[]): Promise<void> {
  await answered((within) => collectionIn(db, name).deleteMany(idsOf(docs), { ...DURABLE, ...within }))
}

function idsOf(docs: Doc[]): { _id: { $in: (Buffer | string)[] } } {
  return { _id: { $in: docs.map(({ _id }) => _id) } }
}

/** Of the owners of pieces, those that are a raw transaction or the BEEF of a note, as hex. */
async function keptOwners(documents: Documents, pieces: Doc[]): Promise<Set<string>> {
  const owners = unique(
    pieces.map(({ _id }) => chunkOwner(_id)),
    hexOf,
  )
  const transactions = await inParts(owners, (part) =>
    documents.all('graph_transactions', { _id: { $in: part } }, { fields: ['txid'] }),
  )
  const notes = await inParts(owners, (part) =>
    documents.all('graph_hook_notes', { beef: { $in: part } }, { fields: ['beef'] }),
  )
  return new Set([...transactions.map(({ txid }) => hexOf(txid)), ...notes.map(({ beef }) => hexOf(beef))])
}
