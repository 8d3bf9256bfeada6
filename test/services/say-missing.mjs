import { spawnSync } from 'node:child_process'

/** What each server that tests are run with takes, by what is said of it. */
const SERVERS = { MariaDB: ['mariadbd'], MongoDB: ['java', 'mvn'] }

const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` }
const isMissing = (program) => spawnSync('sh', ['-c', `command -v ${program}`], { env }).status !== 0

/** Says once, before all tests, which of them are skipped because this machine has no server for them. */
export default function sayMissing() {
  for (const [name, programs] of Object.entries(SERVERS)) {
    const missing = programs.filter(isMissing)
    if (missing.length > 0)
      process.stderr.write(
        `What is tested on ${name} is skipped: there is no ${missing.join(', no ')} here.\n`,
      )
  }
}
