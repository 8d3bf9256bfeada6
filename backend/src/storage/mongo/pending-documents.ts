import { parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import { type CollectionName, withId } from './collections.js'
import type { Doc, Documents, Filter, FindOptions } from './documents.js'
import { equalValues, keyOf, PendingCollection, sortDocs } from './pending-collection.js'

/** One document that is to be as it is said, or is not to be there any more. */
export type Change = {
  collection: CollectionName
  /** Whether the database has the document already. */
  isStored: boolean
} & ({ put: Doc } | { remove: Buffer | string })

/**
 * What the database answers, with the changes of one write laid over it. Nothing is written: the write takes the changes
 * to the end of its work, and one that fails before has left nothing.
 */
export class PendingDocuments implements Documents {
  private readonly collections = new Map<CollectionName, PendingCollection>()

  constructor(private readonly stored: Documents) {}

  async all(name: CollectionName, filter: Filter, options: FindOptions = {}): Promise<Doc[]> {
    const pending = this.collections.get(name)
    if (pending === undefined) return await this.stored.all(name, filter, options)
    const { sort, limit, fields } = options
    const found = [...(await this.untouched(name, filter, options)), ...pending.matching(filter)]
    if (sort !== undefined) sortDocs(found, sort)
    const docs = limit === undefined ? found : found.slice(0, limit)
    if (fields === undefined) return docs
    return docs.map((doc) => Object.fromEntries(fields.map((field) => [field, doc[field]])))
  }

  async first(name: CollectionName, filter: Filter, options?: FindOptions): Promise<Doc | undefined> {
    const [doc] = await this.all(name, filter, { ...options, limit: 1 })
    return doc
  }

  /** Inserts those documents whose key is not there. */
  async insertNew(name: CollectionName, docs: Doc[]): Promise<void> {
    if (docs.length === 0) return
    const pending = this.pending(name)
    for (const part of parts(docs, ROWS_A_STATEMENT)) {
      const keyed = part.map((doc) => withId(name, doc))
      const unknown = keyed.map(({ _id }) => _id).filter((id) => pending.changeOf(id) === undefined)
      const there = new Set<string>()
      if (unknown.length > 0)
        for (const { _id } of await this.stored.all(name, { _id: { $in: unknown } }, { fields: ['_id'] }))
          there.add(keyOf(_id))
      for (const doc of keyed) {
        const change = pending.changeOf(doc._id)
        if (change === undefined ? there.has(keyOf(doc._id)) : change.doc !== null) continue
        pending.set({ id: doc._id, doc, isStored: change?.isStored ?? false })
      }
    }
  }

  /**
   * Changes fields of the documents that match.
   *
   * @param patch The fields as they are to be, or what makes them of a document.
   */
  async update(name: CollectionName, filter: Filter, patch: object | ((doc: Doc) => object)): Promise<void> {
    const docs = await this.all(name, filter)
    const pending = this.pending(name)
    for (const doc of docs) {
      const changed = { ...doc, ...(typeof patch === 'function' ? patch(doc) : patch) }
      pending.set({ id: doc._id, doc: changed, isStored: pending.changeOf(doc._id)?.isStored ?? true })
    }
  }

  /** Puts a document in the place of what its key stands for. */
  async put(name: CollectionName, doc: Doc): Promise<void> {
    await this.delete(name, { _id: withId(name, doc)._id })
    await this.insertNew(name, [doc])
  }

  async delete(name: CollectionName, filter: Filter): Promise<void> {
    const docs = await this.all(name, filter, { fields: ['_id'] })
    const pending = this.pending(name)
    for (const { _id } of docs)
      pending.set({ id: _id, doc: null, isStored: pending.changeOf(_id)?.isStored ?? true })
  }

  /** All that is to be changed, each document once. */
  changes(): Change[] {
    const changes: Change[] = []
    for (const [collection, pending] of this.collections) {
      for (const { id, doc, isStored } of pending.all()) {
        if (doc !== null) changes.push({ collection, isStored, put: doc })
        else if (isStored) changes.push({ collection, isStored, remove: id })
      }
    }
    return changes
  }

  private pending(name: CollectionName): PendingCollection {
    const known = this.collections.get(name)
    if (known !== undefined) return known
    const pending = new PendingCollection()
    this.collections.set(name, pending)
    return pending
  }

  /** What the database answers that no change is about. */
  private async untouched(name: CollectionName, filter: Filter, options: FindOptions): Promise<Doc[]> {
    const pending = this.pending(name)
    const ids = equalValues(filter._id) as (Buffer | string)[] | undefined
    const left = ids?.filter((id) => pending.changeOf(id) === undefined)
    // Of what is asked for by its key, the database need not be asked again.
    if (left?.length === 0) return []
    const asking: Filter = left === undefined ? filter : { ...filter, _id: { $in: left } }
    const { sort, limit, fields } = options
    const wanted = fields && [...new Set(['_id', ...fields, ...Object.keys(sort ?? {})])]
    // Some of the first may not be there any more: then more of them are asked for.
    for (let asked = limit; ; asked = asked && asked * 2) {
      const docs = await this.stored.all(name, asking, {
        ...(sort && { sort }),
        ...(asked !== undefined && { limit: asked }),
        ...(wanted && { fields: wanted }),
      })
      const untouched = docs.filter(({ _id }) => pending.changeOf(_id) === undefined)
      if (limit === undefined || asked === undefined || docs.length < asked || untouched.length >= limit)
        return untouched
    }
  }
}
