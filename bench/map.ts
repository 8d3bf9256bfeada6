import { parseArgs } from 'node:util'
import { SETTINGS, UNUSED_SETTINGS } from '../src/server/config/config.js'
import { LIMITS } from '../src/server/config/limits.js'
import { measureSize, type Room } from './rooms.js'
import { walks } from './walk.js'

// The size of this package in numbers (docs/contributing.md). Run: `npm run map`.

const { values } = parseArgs({ options: { walk: { type: 'boolean' }, files: { type: 'boolean' } } })

function print(...columns: Array<string | number>): void {
  const [name, ...numbers] = columns
  process.stdout.write(
    `${String(name).padEnd(30)}${numbers.map((number) => String(number).padStart(9)).join('')}\n`,
  )
}

function printRooms(title: string, rooms: readonly Room[]): void {
  print(title, 'files', 'lines', 'classes', 'errors')
  for (const room of rooms) print(`  ${room.name}`, room.files, room.lines, room.classes, room.errors)
  const total = (of: Exclude<keyof Room, 'name'>): number => rooms.reduce((sum, room) => sum + room[of], 0)
  print('  all', total('files'), total('lines'), total('classes'), total('errors'))
}

if (values.walk === true)
  for (const [name, { files, promises, statements }] of Object.entries(await walks())) {
    const functions = [...files.values()].reduce((sum, count) => sum + count, 0)
    process.stdout.write(
      `${name}: ${files.size} files, ${functions} functions, ${promises} promises, ${statements} statements\n`,
    )
    if (values.files === true) for (const [file, count] of files) process.stdout.write(`  ${file} ${count}\n`)
  }
else {
  const { source, tests, docs } = measureSize(process.cwd())
  printRooms('source', source)
  printRooms('tests', tests)
  const settings = SETTINGS.length - Object.keys(UNUSED_SETTINGS).length
  process.stdout.write(`settings: ${settings}, of which limits: ${Object.keys(LIMITS).length}\n`)
  process.stdout.write(`docs: ${docs.pages} pages, ${docs.words} words\n`)
}
