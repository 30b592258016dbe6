"""Where credentials are planted in tests, what they look like, and paths that hold none."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Iterator
from urllib.parse import quote

LETTERS = string.ascii_letters + string.digits

SECRET_PATHS = [
    *("/home/ann/.ssh/config", "/root/.ssh/known_hosts", "/home/ann/.aws/config"),
    *("/home/ann/.aws/credentials", "/home/ann/.aws/sso/cache/a.json", "/Users/ann/.kube/config"),
    *(
        "/Users/ann/.kube/cache/x.yaml",
        "/home/ann/.docker/config.json",
        "/home/ann/.gnupg/gpg.conf",
    ),
    *("/home/ann/.config/gcloud/configurations/default", "/home/ann/.config/gh/hosts.yml"),
    *("/home/ann/.azure/profile.json", "/home/ann/.netrc", "/home/ann/.pypirc", "/root/.npmrc"),
    *("/home/ann/.pgpass", "/home/ann/.git-credentials", "/home/ann/.bash_history"),
    *("/home/ann/.oci/config", "/home/ann/.terraform.d/credentials.tfrc.json"),
    *("C:/Users/ann/.aws/config", "C:/Users/ann/_netrc", "/mnt/c/Users/ann/.kube/config"),
    *("C:/Users/ann/AppData/Roaming/gcloud/a.json", "/etc/ssl/private/a.txt", "/run/secrets/db"),
    *("{work}/.env", "{work}/.ENV", "{work}/.env.local", "{work}/.env.production", "{work}/.envrc"),
    *("{work}/.env-staging", "{work}/.env_old", "{work}/a/b/.env", "{work}/prod.env"),
    *("{work}/id_rsa", "{work}/keys/id_ed25519", "{work}/id_ecdsa.bak", "{work}/server.pem"),
    *("{work}/certs/tls.KEY", "{work}/AuthKey.p8", "{work}/store.jks", "{work}/vault.kdbx"),
    *("{work}/secrets.yml", "{work}/config/secrets.prod.yaml", "{work}/secret.json"),
    *("{work}/credentials.json", "{work}/credentials", "{work}/credentials.toml"),
    *("{work}/service-account-prod.json", "{work}/client_secret_1.json", "{work}/prod.tfvars"),
    *("{work}/terraform.tfstate", "{work}/kubeconfig", "{work}/.htpasswd", "{work}/master.key"),
    *("{work}/.secrets", "{work}/db_password.txt", "{work}/.vault_pass", "{work}/.env~"),
    *("{work}/.dev.vars", "{work}/.dev.vars.production", "{work}/.Renviron", "{work}/env.local"),
    *("{work}/env.production", "{work}/.env.d/postgresql", "{work}/.envs/.production/.django"),
    *("{work}/app.env.local", "{work}/.bundle/config", "{work}/android/keystore.properties"),
    *("{work}/android/key.properties", "{work}/.msmtprc", "{work}/.mbsyncrc", "{work}/.lftprc"),
    *("{work}/auth.json", "{work}/rclone.conf", "{work}/vault-password", "{work}/.vault-password"),
    *(
        "{work}/vault_pass.txt",
        "{work}/.vaultpass",
        "{work}/prod.vault_pass",
        "{work}/nuget.config",
    ),
    *(
        "{work}/shop-firebase-adminsdk-a1-b2.json",
        "{work}/secrets/db_password",
        "{work}/NuGet.Config",
    ),
    *("{work}/secrets/prod/mail.txt", "{work}/.secrets/token", "{work}/local.settings.json"),
    *(
        "{work}/appsettings.Production.json",
        "{work}/config/database.yml",
        "{work}/.pg_service.conf",
    ),
    *("{work}/.sentryclirc", "{work}/wg0.conf", "{work}/build.pkrvars.hcl", "{work}/.fetchmailrc"),
    *(
        "{work}/.dev.vars~",
        "{work}/rclone.conf.bak",
        "{work}/..Renviron.swp",
        "/home/ann/.dbt/a.yml",
    ),
    *("{work}/.#secrets.yml", "{work}/home/.ssh/config", "{work}/x/../.env", "{work}/.env.swp"),
]

_INNOCENT = """
.aws/task-definition.json .azure/pipelines.yml .azure/templates/build.yml .docker/php/Dockerfile
.docker/nginx/default.conf .kube/deployment.yaml .kube/overlays/dev/kustomization.yaml secrets.kt
.aws/buildspec.yml .gcloud/app.yaml .config/gh/workflow.yml .config/gcloud/deploy.sh Secrets.swift
src/secrets.py src/Secret.java src/secret.rs src/credentials.ts lib/credentials.rb secrets.go
secret.cs lib/credential_store.dart src/secrets/mod.rs src/secrets/index.ts secrets/README.md
docs/secrets.md docs/credentials.rst .env.example .env.sample .env.template .env.dist example.env
sample.env .env.example.local src/env.ts src/env.d.ts env.py environment.yml environment.prod.ts
.envoy.yaml id_rsa.pub keys/id_ed25519.pub src/id_rsa_test.go src/keys.rs src/key.py
src/keyboard.js key.h src/pem.c src/pem_reader.py src/token.rs src/tokens.py tokenizer.json
src/tokenizer.cpp src/password.ts src/password_reset.rb app/passwords/edit.html.erb
app/views/passwords/new.html templates/secret.yaml charts/app/templates/secret.yaml
charts/app/templates/secrets.yaml charts/app/values.yaml k8s/external-secret.yaml
secrets.schema.json secrets.d.ts secrets.tf secrets.vue secrets.html secrets.css credentials.css
credentials.scss terraform/variables.tf terraform/main.tf ansible/vault.py src/vault.go
src/keystore.ts src/Keystore.kt src/keychain.swift netrc.py src/netrc.c npmrc.md docs/npmrc.md
pypirc.rst src/pgpass.rs ssh/client.go src/ssh/config.py ssh_config.py src/gpg.rs
src/gnupg/__init__.py aws/lambda.py aws/credentials.py azure/functions.cs docker/compose.yml
docker-compose.yml Dockerfile kube/client.go kubernetes/deploy.yaml gcloud/deploy.py gh/cli.go
history.py shell_history.py src/history.ts browser_history.sql boto.py src/boto/s3.py
certs/README.md certs/generate.sh scripts/rotate_keys.sh src/auth/token.ts src/auth/oauth.py
src/auth/login.jsx .github/workflows/secrets.yml.md .gitignore .gitattributes .editorconfig
.eslintrc.json .prettierrc .vscode/settings.json .devcontainer/devcontainer.json
.circleci/config.yml .gitlab-ci.yml Makefile home/index.html users/admin.py src/users/root.ts
auth.js auth.ts oauth.json .dev.vars.example env.example env.yaml src/env/local.ts
rclone.conf.example secrets/.gitkeep secrets/Makefile secrets/fetch.sh secrets/kustomization.yaml
secrets/package.json packages/secrets/src/index.ts charts/app/templates/secrets/mail.yaml
secrets/db_password.example Renviron.R keystore.py nuget.exe.config vault-password.py vault.yml
vault_password_client.py admin_sdk.json appsettings.json appsettings.Development.json
database.yml.example database.yaml.md key.properties.template
gradle.properties local.properties .yarnrc.yml .condarc
.env.example.md prod.env.example .virtualenvs/a.cfg .envs.md bundle/config .bundle/plugin/index
root/layout.tsx home/user/view.vue users/me/config.rb
"""


def innocent_paths() -> list[str]:
    """300 paths of projects that hold no credentials, though some of their words may."""
    found = _INNOCENT.split()
    folders = ["src", "lib/core", "app", "packages/web", "services/api"]
    words = ["secret", "secrets", "credentials", "token", "password", "key", "env", "ssh", "vault"]
    endings = ["py", "ts", "go", "rs", "kt", "java", "rb", "cs"]
    for folder in folders:
        for word in words:
            for ending in endings:
                found.append(f"{folder}/{word}_{ending}/{word}.{ending}")
    return [f"/srv/projects/shop/{path}" for path in found][:300]


def schemes_of(path: str) -> Iterator[str]:
    """URIs by which editors name a path."""
    rooted = "/" + path.lstrip("/")
    encoded = quote(rooted, safe="/")
    yield f"file://{encoded}"
    yield f"file://{quote(rooted, safe='/:')}"
    yield f"git:{encoded}?{quote(json.dumps({'path': rooted, 'ref': 'HEAD'}))}"
    yield f"git:/w/shown.git?{json.dumps({'path': rooted, 'ref': '~'})}"
    yield f"vscode-remote://ssh-remote%2Bhost{encoded}"
    yield f"vscode-remote://dev-container%2B2f77{quote(encoded, safe='/')}"
    yield f"untitled:{encoded}"
    yield f"vscode-userdata:{encoded}"
    yield f"vscode-local-history:{encoded}?{quote(json.dumps([rooted, 3]))}"
    yield f"gitlens://0a1b{encoded}?{quote(json.dumps({'ref': 'main'}))}"
    folder, _, last = encoded.rpartition("/")
    yield f"fugitive://{folder}/.git//0/{last}"
    yield f"zipfile:///w/backup.zip::{encoded.lstrip('/')}"
    yield f"jar:file:///w/backup.jar!{encoded}"
    yield f"file:///ssh:host:{encoded}"
    yield f"diff:/w/a?left={quote(rooted, safe='')}&right=b"
    yield f"output:x#{quote(rooted, safe='')}"


def word(generator: random.Random, length: int, alphabet: str = LETTERS) -> str:
    return "".join(generator.choices(alphabet, k=length))


def token(generator: random.Random) -> tuple[str, str]:
    """A kind of credential whose shape tells it, and one of that kind."""
    upper, hexadecimal = string.ascii_uppercase + string.digits, "0123456789abcdef"
    header = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    claims = base64.urlsafe_b64encode(b'{"sub":"%d","name":"someone"}' % generator.getrandbits(40))
    body = "\n".join(word(generator, 64, LETTERS + "+/") for _ in range(6))
    kinds = {
        "aws": f"AKIA{word(generator, 16, upper)}",
        "github": f"gh{generator.choice('pousr')}_{word(generator, 36)}",
        "github2": f"github_pat_{word(generator, 22)}_{word(generator, 59)}",
        "gitlab": f"glpat-{word(generator, 20)}",
        "slack": f"xoxb-{word(generator, 12, string.digits)}-{word(generator, 24)}",
        "google": f"AIza{word(generator, 35)}",
        "stripe": f"sk_live_{word(generator, 24)}",
        "openai": f"sk-proj-{word(generator, 48)}",
        "anthropic": f"sk-ant-api03-{word(generator, 80)}",
        "huggingface": f"hf_{word(generator, 34)}",
        "npm": f"npm_{word(generator, 36)}",
        "pypi": f"pypi-AgEIcHlwaS5vcmc{word(generator, 60)}",
        "sendgrid": f"SG.{word(generator, 22)}.{word(generator, 43)}",
        "jwt": f"{header}.{claims.decode().rstrip('=')}.{word(generator, 43)}",
        "vault": f"hvs.{word(generator, 24)}",
        "azure": f"AccountKey={word(generator, 86, LETTERS + '+/')}==",
        "connection": f"Server=db;User Id=sa;Password={word(generator, 10)}7a;Encrypt=true",
        "url": f"postgres://admin:{word(generator, 14)}7a@db.internal:5432/app",
        "bearer": f"Authorization: Bearer {word(generator, 40)}7",
        "netrc": f"machine host login ann password {word(generator, 14)}7a",
        "digitalocean": f"dop_v1_{word(generator, 64, hexadecimal)}",
        "rubygems": f"rubygems_{word(generator, 48, hexadecimal)}",
        "atlassian": f"ATATT3{word(generator, 60)}",
        "key": f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----",
        "end": f"{body}\n-----END OPENSSH PRIVATE KEY-----",
    }
    kind = generator.choice(list(kinds))
    return kind, kinds[kind]
