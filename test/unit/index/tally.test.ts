import fc from 'fast-check'
import { Sql } from '../../../backend/src/facts/connection.js'
import { SCHEMA, TALLY_STEPS } from '../../../backend/src/index/schema.js'

// What the index counts for charts is what a scan of its tables would count, whatever is written.

const UNPROVEN = 2 ** 32
const TYPES = ['image/png', 'IMAGE/GIF', 'text/html; charset=utf-8', 'text/plain', 'application/ld+json', 'x']
const NAMES = ['a', 'al', 'ali', 'b', '-', 'z9', 'x'.repeat(255)]

const recency = fc.oneof(fc.integer({ min: 0, max: 1_000_000 }), fc.constant(UNPROVEN + 5))
const active = fc.constantFrom(0, 1)
const id = fc.integer({ min: 1, max: 4 })
const write = fc.oneof(
  fc.record({ kind: fc.constant('name' as const), id, name: fc.constantFrom(...NAMES), active, recency }),
  fc.record({
    ...{ kind: fc.constant('out' as const), id, active, recency: fc.option(recency) },
    ...{ type: fc.constantFrom(...TYPES), length: fc.nat(100_000) },
  }),
  fc.record({ kind: fc.constant('decide' as const), id, active }),
  fc.record({ kind: fc.constant('move' as const), id, recency }),
  fc.record({ kind: fc.constant('remove' as const), id }),
)

function apply(sql: Sql, each: typeof write extends fc.Arbitrary<infer Write> ? Write : never): void {
  switch (each.kind) {
    case 'name':
      sql.run('delete from name where tid = ?', each.id)
      sql.run(
        'insert into name (tid, vout, name, active, recency, tkey) values (?, 2, ?, ?, ?, 1)',
        ...[each.id, each.name, each.active, each.recency],
      )
      break
    case 'out':
      sql.run('delete from out where tid = ?', each.id)
      sql.run(
        `insert into out (tid, vout, sats, carrier, unresolved, active, ctype, clen, recency, tkey)
          values (?, 0, 1, 0, 0, ?, ?, ?, ?, 1)`,
        ...[each.id, each.active, Buffer.from(each.type), each.length, each.recency],
      )
      break
    case 'decide':
      for (const table of ['name', 'out'])
        sql.run(`update ${table} set active = ? where tid = ?`, each.active, each.id)
      break
    case 'move':
      sql.run('update name set recency = ? where tid = ?', each.recency, each.id)
      sql.run('update out set recency = ? where tid = ? and recency is not null', each.recency, each.id)
      break
    case 'remove':
      for (const table of ['name', 'out']) sql.run(`delete from ${table} where tid = ?`, each.id)
      break
  }
}

function scanned(sql: Sql): Map<string, [n: number, bytes: number]> {
  const counts = new Map<string, [number, number]>()
  const add = (key: string, bytes = 0): void => {
    const [n, sum] = counts.get(key) ?? [0, 0]
    counts.set(key, [n + 1, sum + bytes])
  }
  for (const { name, recency } of sql.all('select name, recency from name where active = 1')) {
    for (let length = 1; length <= name.length; length++) add(`tree ${name.slice(0, length)}`)
    if (recency < UNPROVEN) for (const step of TALLY_STEPS) add(`${step} ${Math.floor(recency / step)}`)
  }
  const kinds = ['image', 'image', 'page', 'text', 'json', 'other']
  for (const row of sql.all('select ctype, clen from out where active = 1 and recency is not null'))
    add(`content ${kinds[TYPES.indexOf(row.ctype.toString())]} ${String(row.clen).length}`, row.clen)
  return counts
}

test('counts are those of a scan, whatever is written, decided, proven and removed', () => {
  fc.assert(
    fc.property(fc.array(write, { maxLength: 30 }), (writes) => {
      const sql = new Sql(':memory:')
      sql.exec(SCHEMA)
      for (const each of writes) apply(sql, each)
      const kept = sql.all('select what, key, n, bytes from tally where n <> 0 or bytes <> 0')
      const found = new Map(kept.map(({ what, key, n, bytes }) => [`${what} ${key}`, [n, bytes]]))
      const expected = scanned(sql)
      sql.close()
      expect(new Map([...found].sort())).toEqual(new Map([...expected].sort()))
    }),
  )
})
