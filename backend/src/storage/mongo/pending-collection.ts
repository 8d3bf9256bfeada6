import sift from 'sift'
import type { Comparison, Doc, Filter, FindOptions, Value } from './documents.js'

/** What a write is about to make of one document. */
export interface PendingChange {
  id: Buffer | string
  /** As it is to be; null where it is to go. */
  doc: Doc | null
  /** Whether the database has it, as it was. */
  isStored: boolean
}

/** What a write is about to change in one collection, found by what its filters ask for. */
export class PendingCollection {
  private readonly changes = new Map<string, PendingChange>()
  /** By field and by what stands in it, the keys of documents; of a field that was asked for. */
  private readonly indexes = new Map<string, Map<unknown, Set<string>>>()

  /** What is about to become of a document; undefined where nothing is. */
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

  /** The documents that are to be there and match. */
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

  /** The keys of the documents that may match: the fewest that one equal value leaves; undefined where there is none. */
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

/** A key of documents as text. */
export function keyOf(id: Buffer | string): string {
  return String(comparable(id))
}

/** The values that a field has to be equal to one of; undefined where a filter asks otherwise. */
export function equalValues(wanted: Filter[string]): Value[] | undefined {
  if (!isComparison(wanted)) return Array.isArray(wanted) || wanted === undefined ? undefined : [wanted]
  return wanted.$in
}

function isComparison(wanted: Filter[string]): wanted is Comparison {
  return (
    typeof wanted === 'object' && wanted !== null && !ArrayBuffer.isView(wanted) && !Array.isArray(wanted)
  )
}

/**
 * A value as `sift` compares it: of bytes, their hex behind their length, by which the database sorts them first.
 */
function comparable(value: Value | undefined): unknown {
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

/** The fields that a filter looks at. */
function fieldsOf(filter: Filter): string[] {
  return Object.entries(filter).flatMap(([field, wanted]) =>
    Array.isArray(wanted) ? wanted.flatMap(fieldsOf) : [field],
  )
}

/** Puts documents in an order, as the database does: what is absent first. */
export function sortDocs(docs: Doc[], order: NonNullable<FindOptions['sort']>): Doc[] {
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
