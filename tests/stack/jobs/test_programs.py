"""The programs of a job's pools."""

from google.cloud.aiplatform_v1.types import CustomJobSpec

from trainstack.jobs.images.programs import PoolContainer, Provided, programs_of

from .conftest import container


def test_an_image_that_several_pools_name_is_looked_up_once_and_is_the_same_in_all() -> None:
    asked: list[str] = []

    def find(uri: str) -> PoolContainer:
        asked.append(uri)
        return PoolContainer(image=f"{uri}@{len(asked)}")

    pools = [container(image="i:1"), container(image="i:1"), container(image="j:1")]
    spec = CustomJobSpec.pb(CustomJobSpec({"worker_pool_specs": pools}))
    for _ in range(2):
        programs = programs_of(spec, pools=range(3), provided=Provided(images=dict, find=find))
    assert asked == ["i:1", "j:1"] * 2, "once for each job"
    containers = [program.container for program in programs.values()]
    assert [each.image for each in containers if each is not None] == ["i:1@3", "i:1@3", "j:1@4"]
