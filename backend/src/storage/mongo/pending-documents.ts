import sift from 'sift'
import { parts, ROWS_A_STATEMENT } from '../rows/columns.js'
import {
  type FieldValue,
  type Filter,
  type FindOptions,
  isComparison,
  type RowReader,
  type RowWriter,
} from '../rows/rows.js'
import { byKey, type CollectionName, type Doc, equalValues, withId } from './collections.js'

/** A document to put or to remove. */
export type DocumentChange = {
  collection: CollectionName
  /** Whether the database has the document. */
  isStored: boolean
} & ({ put: Doc } | { remove: Buffer | string })

/**
 * The database as a write sees it: the stored documents with its own changes over them (read-your-writes). Nothing is written
 * until the write commits the changes, so that one that fails leaves nothing.
 */
export class PendingDocuments implements RowWriter {
  private readonly collections = new Map<CollectionName, PendingCollection>()

  constructor(private readonly stored: RowReader) {}

  async all(
    names: CollectionName | readonly CollectionName[],
    filter: Filter,
    options: FindOptions = {},
  ): Promise<Doc[]> {
    if (typeof names === 'string') return await this.allOf(names, byKey(names, filter), options)
    return (await Promise.all(names.map((name) => this.all(name, filter, options)))).flat()
  }

  async count(name: CollectionName, filter: Filter, limit?: number): Promise<number> {
    return (await this.all(name, filter, { fields: ['_id'], ...(limit !== undefined && { limit }) })).length
  }

  private async allOf(name: CollectionName, filter: Filter, options: FindOptions): Promise<Doc[]> {
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

  /** Inserts the documents whose key does not exist. */
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

  /** Changes fields of matching documents. @param patch The new fields, or a function of the document. */
  async update(name: CollectionName, filter: Filter, patch: object | ((doc: Doc) => object)): Promise<void> {
    const docs = await this.all(name, filter)
    const pending = this.pending(name)
    for (const doc of docs) {
      const changed = { ...doc, ...(typeof patch === 'function' ? patch(doc) : patch) }
      pending.set({ id: doc._id, doc: changed, isStored: pending.changeOf(doc._id)?.isStored ?? true })
    }
  }

  /** Inserts or replaces a document. */
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

  /** All changes, one per document. */
  changes(): DocumentChange[] {
    const changes: DocumentChange[] = []
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

  /** The matching stored documents that are not changed. */
  private async untouched(name: CollectionName, filter: Filter, options: FindOptions): Promise<Doc[]> {
    const pending = this.pending(name)
    const ids = equalValues(filter._id) as (Buffer | string)[] | undefined
    const left = ids?.filter((id) => pending.changeOf(id) === undefined)
    // Everything asked for by key is pending: no need to ask the database.
    if (left?.length === 0) return []
    const asking: Filter = left === undefined ? filter : { ...filter, _id: { $in: left } }
    const { sort, limit, fields } = options
    const wanted = fields && [...new Set(['_id', ...fields, ...Object.keys(sort ?? {})])]
    // Some of the first may be deleted by this write: then read more.
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

/** The pending change of one document. */
interface PendingChange {
  id: Buffer | string
  /** The new document; null if it is deleted. */
  doc: Doc | null
  /** Whether the database has it. */
  isStored: boolean
}

/** The pending changes in one collection, indexed by the fields that filters compare. */
class PendingCollection {
  private readonly changes = new Map<string, PendingChange>()
  /** The keys of documents by field and value, of the fields that were asked for. */
  private readonly indexes = new Map<string, Map<unknown, Set<string>>>()

  changeOf(id: Buffer | string): PendingChange | undefined {
    return this.changes.get(keyOf(id))
  }

  all(): Iterable<PendingChange> {
    return this.changes.values()
  }

  set(change: PendingChange): void {
    const key = keyOf(change.id)
    const before = this.changes.get(key)?.doc
    for (const [field, index] of this.indexes) {
      if (before) index.get(comparable(before[field]))?.delete(key)
      if (change.doc) addTo(index, comparable(change.doc[field]), key)
    }
    this.changes.set(key, change)
  }

  /** The matching documents after the changes. */
  matching(filter: Filter): Doc[] {
    const keys = this.candidates(filter) ?? this.changes.keys()
    const test = sift.default(comparableFilter(filter))
    const fields = fieldsOf(filter)
    const found: Doc[] = []
    for (const key of keys) {
      const doc = this.changes.get(key)?.doc
      if (doc && test(Object.fromEntries(fields.map((field) => [field, comparable(doc[field])]))))
        found.push(doc)
    }
    return found
  }

  /** The keys of documents that may match: the smallest set by one equality; undefined if the filter has none. */
  private candidates(filter: Filter): Set<string> | undefined {
    const sets: Set<string>[] = []
    for (const [field, wanted] of Object.entries(filter)) {
      if (field === '$or') {
        const branches = (wanted as Filter[]).map((branch) => this.candidates(branch))
        if (branches.every((branch) => branch !== undefined)) sets.push(union(branches))
        continue
      }
      if (field === '$and') {
        sets.push(...(wanted as Filter[]).flatMap((branch) => this.candidates(branch) ?? []))
        continue
      }
      const values = equalValues(wanted)
      if (values === undefined) continue
      const index = this.indexOf(field)
      sets.push(union(values.map((value) => index.get(comparable(value)) ?? new Set())))
    }
    return sets.sort((a, b) => a.size - b.size)[0]
  }

  private indexOf(field: string): Map<unknown, Set<string>> {
    const known = this.indexes.get(field)
    if (known !== undefined) return known
    const index = new Map<unknown, Set<string>>()
    for (const [key, { doc }] of this.changes) if (doc) addTo(index, comparable(doc[field]), key)
    this.indexes.set(field, index)
    return index
  }
}

function addTo(index: Map<unknown, Set<string>>, value: unknown, key: string): void {
  const keys = index.get(value)
  if (keys === undefined) index.set(value, new Set([key]))
  else keys.add(key)
}

function union(sets: Set<string>[]): Set<string> {
  const [first] = sets
  return sets.length === 1 && first !== undefined ? first : new Set(sets.flatMap((set) => [...set]))
}

/** A document's key as text. */
export function keyOf(id: Buffer | string): string {
  return String(comparable(id))
}

/**
 * A value as `sift` compares it, which compares Buffers by identity. Bytes become hex after their length, by which the
 * database sorts them first.
 */
function comparable(value: FieldValue | undefined): unknown {
  if (!ArrayBuffer.isView(value)) return value ?? null
  return `${value.length.toString(16).padStart(8, '0')}${value.toString('hex')}`
}

function comparableFilter(filter: Filter): object {
  return Object.fromEntries(
    Object.entries(filter).map(([field, wanted]) => [field, comparableCondition(wanted)]),
  )
}

function comparableCondition(wanted: Filter[string]): unknown {
  if (Array.isArray(wanted)) return wanted.map(comparableFilter)
  if (!isComparison(wanted)) return comparable(wanted)
  return Object.fromEntries(
    Object.entries(wanted).map(([operator, value]) => [
      operator,
      Array.isArray(value) ? value.map(comparable) : comparable(value),
    ]),
  )
}

/** The fields of a filter. */
function fieldsOf(filter: Filter): string[] {
  return Object.entries(filter).flatMap(([field, wanted]) =>
    Array.isArray(wanted) ? wanted.flatMap(fieldsOf) : [field],
  )
}

/** Sorts documents as the database does: null first. */
function sortDocs(docs: Doc[], order: NonNullable<FindOptions['sort']>): Doc[] {
  const fields = Object.entries(order)
  return docs.sort((one, other) => {
    for (const [field, direction] of fields) {
      const [a, b] = [comparable(one[field]), comparable(other[field])] as (string | number | null)[]
      if (a === b) continue
      if (a === null || a === undefined) return -direction
      if (b === null || b === undefined) return direction
      return a < b ? -direction : direction
    }
    return 0
  })
}
