import { ConfigError, readConfig, SETTINGS } from '../../../../src/server/config/config.js'
import { misspelledSettings } from '../../../../src/server/config/settings.js'

describe('a variable that is nearly a setting', () => {
  test.each([
    ['PROFIL', 'PROFILE'],
    ['PROFILES', 'PROFILE'],
    ['GENISIS', 'GENESIS'],
    ['MAX_BODY_BYTE', 'MAX_BODY_BYTES'],
    ['MAX_BODY_BYTES_', 'MAX_BODY_BYTES'],
    ['MAX_WAITING_SUBMISSION', 'MAX_WAITING_SUBMISSIONS'],
    ['ADMIN_TOKN', 'ADMIN_TOKEN'],
    ['ADMIN_TOKEN_FILE', 'ADMIN_TOKEN'],
    ['CHAIN_TRACKER_URL', 'CHAIN_TRACKER'],
    ['CHAIN_TRACKER_TIMEOUT', 'CHAIN_TRACKER_TIMEOUT_MS'],
    ['CHAINTRACKER', 'CHAIN_TRACKER'],
    ['SYNC_PEER', 'SYNC_PEERS'],
    ['SYNC_TIMEOUT', 'SYNC_TIMEOUT_MS'],
    ['KNEX_URI', 'KNEX_URL'],
    ['READ_PER_MINUTE', 'READS_PER_MINUTE'],
  ])('%s stops the start and names %s', (name, setting) => {
    const reading = () => readConfig({ [name]: 'x' })
    expect(reading).toThrow(ConfigError)
    expect(reading).toThrow(`${name}: unknown setting; did you mean `)
    // Of several that are as near, any helps.
    const [found] = misspelledSettings({ [name]: 'x' }, SETTINGS)
    expect(found?.setting.startsWith(setting)).toBe(true)
  })

  test.each('LOGLEVEL MONGO_URI DATADIR NETWORKS LOG_LEVEL_FILE PORTT PROT HHOST DATABASE_URI'.split(' '))(
    '%s may well be meant for somebody else, and is warned of',
    (name) => {
      expect(readConfig({ [name]: 'x' }).warnings).toEqual([
        expect.stringMatching(new RegExp(`^${name} is set but is not a setting; did you mean [A-Z_]+\\?$`)),
      ])
    },
  )

  test.each([
    ['DATABASE_URL', 'KNEX_URL or MONGO_URL'],
    ['MONGODB_URI', 'KNEX_URL or MONGO_URL'],
    ['HTTP_PORT', 'PORT'],
    ['BIND_ADDRESS', 'HOST'],
    // Not SERVER_PORT, which is two letters away.
    ['SERVER_HOST', 'HOST'],
  ])('%s, as others call it, is said to have no effect, and what it is called here', (name, setting) => {
    const { unused, warnings } = readConfig({ [name]: 'x' })
    expect([unused, warnings]).toEqual([
      [expect.stringMatching(new RegExp(`^${name} is set and has no effect: .*${setting}`))],
      [],
    ])
  })

  test('one that is empty counts as not set', () => {
    expect(readConfig({ PROFIL: '' }).warnings).toEqual([])
  })
})

test('the environment of shells, containers, CI, npm and other programs is left alone', () => {
  const names =
    `PATH HOME HOSTNAME HOSTTYPE SHELL USER LOGNAME PWD OLDPWD TERM COLORTERM LANG LC_ALL TZ SHLVL EDITOR PAGER
    DISPLAY XDG_DATA_DIRS XDG_RUNTIME_DIR SSH_AUTH_SOCK TMPDIR MAIL POSTS PORTS SPORT GHOST HOSTS SEEDS AWS_PROFILE
    AWS_REGION NODE_ENV NODE_OPTIONS NODE_VERSION YARN_VERSION INIT_CWD npm_config_port npm_package_version npm_lifecycle_event
    CI GITHUB_ACTIONS GITHUB_TOKEN GITLAB_CI RUNNER_OS BUILD_NUMBER KUBERNETES_SERVICE_HOST KUBERNETES_PORT_443_TCP_PORT
    MINETREE_PORT MINETREE_PORT_8080_TCP MINETREE_SERVICE_HOST MARIADB_PASSWORD MONGO_PASSWORD MONGO_INITDB_ROOT_USERNAME
    MYSQL_ROOT_PASSWORD DATABASE_URL REDIS_URL NO_COLOR FORCE_COLOR DEBUG LOG_FORMAT HTTP_PROXY HTTPS_PROXY NO_PROXY
    SYSTEMD_EXEC_PID INVOCATION_ID JOURNAL_STREAM MAX_OLD_SPACE UV_THREADPOOL_SIZE MALLOC_ARENA_MAX JAVA_HOME PROFILE_ID
    DOCKER_HOST COMPOSE_PROJECT_NAME`.split(/\s+/)
  const env = Object.fromEntries(names.map((name) => [name, 'x']))
  expect([misspelledSettings(env, SETTINGS), readConfig(env).warnings]).toEqual([[], []])
})

test('no setting is taken for another one', () => {
  expect(misspelledSettings(Object.fromEntries(SETTINGS.map((name) => [name, 'x'])), SETTINGS)).toEqual([])
})
